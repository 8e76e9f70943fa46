// SPDX-License-Identifier: BSL-1.0
#include "chart.hpp"

#include <cmath>
#include <cstddef>
#include <cstdio>

#include "../escaped.hpp"

namespace {

constexpr double width = 640, height = 380, left = 64, right = 16, top = 66, bottom = 58;

std::string number(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", x);
  return text;
}

std::string text_at(double x, double y, char const* anchor, std::string const& what,
                    std::string const& more = "") {
  return "<text x=\"" + number(x) + "\" y=\"" + number(y) + "\" text-anchor=\"" + anchor + "\"" +
         more + ">" + escaped(what) + "</text>\n";
}

struct plot {
  chart const& c;
  double x(double v) const {
    return left + (v - c.x_from) / (c.x_to - c.x_from) * (width - left - right);
  }
  double y(double v) const {
    return height - bottom - (v - c.y_from) / (c.y_to - c.y_from) * (height - top - bottom);
  }
  std::string at(double px, double py) const { return number(x(px)) + " " + number(y(py)); }
};

/// A curve with its band: an area, or a bar at each point.
std::string curve_of(plot const& p, chart_curve const& curve) {
  std::string const style = " class=\"s" + std::to_string(curve.style);
  std::string line, band, marks;
  for (chart_point const& q : curve.points) {
    char const* const to = line.empty() ? "M" : "L";
    line.append(to).append(p.at(q.x, q.y));
    band.append(to).append(p.at(q.x, q.high));
    if (!p.c.has_marks) continue;
    marks += "<path" + style + " bar\" d=\"M" + p.at(q.x, q.low) + "L" + p.at(q.x, q.high) +
             "\"/>\n<circle" + style + " mark\" cx=\"" + number(p.x(q.x)) + "\" cy=\"" +
             number(p.y(q.y)) + "\" r=\"3.5\"><title>" + escaped(curve.name) + ": " +
             escaped(std::to_string(q.y)) + "</title></circle>\n";
  }
  if (line.empty()) return "";
  for (std::size_t i = curve.points.size(); i-- > 0;)
    band.append("L").append(p.at(curve.points[i].x, curve.points[i].low));
  return (p.c.has_marks ? "" : "<path" + style + " band\" d=\"" + band + "Z\"/>\n") + "<path" +
         style + " curve\" d=\"" + line + "\"><title>" + escaped(curve.name) + "</title></path>\n" +
         marks;
}

}  // namespace

std::vector<double> round_numbers(double from, double to) {
  double step = std::pow(10, std::floor(std::log10((to - from) / 8)));
  for (double const larger : {2.0, 2.5, 2.0})
    if ((to - from) / step > 8) step *= larger;
  std::vector<double> all;
  for (double i = std::ceil(from / step); i * step <= to * (1 + 1e-12); ++i)
    all.push_back(i * step);
  return all;
}

std::string svg_of(chart const& c, int id) {
  plot const p{c};
  std::string const clip = "inside" + std::to_string(id);
  std::string svg = "<svg class=\"chart\" viewBox=\"0 0 " + number(width) + " " + number(height) +
                    "\" role=\"img\" aria-label=\"" + escaped(c.title) + "\">\n<clipPath id=\"" +
                    clip + "\"><rect x=\"" + number(left) + "\" y=\"" + number(top - 4) +
                    "\" width=\"" + number(width - left - right) + "\" height=\"" +
                    number(height - top - bottom + 8) + "\"/></clipPath>\n";
  svg += text_at(left, 20, "start", c.title, " class=\"title\"");
  double x = left;
  for (chart_curve const& curve : c.curves) {
    svg += "<path class=\"s" + std::to_string(curve.style) + " curve\" d=\"M" + number(x) +
           " 42h28\"/>" + text_at(x + 34, 46, "start", curve.name);
    x += 34 + 8.0 * double(curve.name.size()) + 22;
  }
  for (double const y : round_numbers(c.y_from, c.y_to))
    svg += "<path class=\"grid\" d=\"M" + number(left) + " " + number(p.y(y)) + "H" +
           number(width - right) + "\"/>" +
           text_at(left - 8, p.y(y) + 4, "end",
                   c.y_to - c.y_from < 0.3 ? std::to_string(y).substr(0, 5)
                                           : std::to_string(y).substr(0, 4));
  for (auto const& [at, words] : c.x_marks)
    svg += "<path class=\"grid\" d=\"M" + number(p.x(at)) + " " + number(height - bottom) +
           "v5\"/>" + text_at(p.x(at), height - bottom + 20, "middle", words);
  svg += text_at((left + width - right) / 2, height - 12, "middle", c.x_label);
  svg += text_at(
      0, 0, "middle", c.y_label,
      " transform=\"translate(16 " + number((top + height - bottom) / 2) + ") rotate(-90)\"");
  svg += "<g clip-path=\"url(#" + clip + ")\">\n";
  for (chart_curve const& curve : c.curves) svg += curve_of(p, curve);
  return svg + "</g></svg>\n";
}
