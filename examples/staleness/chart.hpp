// SPDX-License-Identifier: BSL-1.0
//
// A chart with curves, as SVG within a page. Colours are variables of the page's style sheet, so
// that a dark page has others; curves differ in their dashes, too.
#pragma once

#include <string>
#include <utility>
#include <vector>

struct chart_point {
  double x, y;
  double low, high;  ///< the band around y
};

struct chart_curve {
  std::string name;
  int style;  ///< 0 to 4: of colour and dashes
  std::vector<chart_point> points;
};

struct chart {
  std::string title, x_label, y_label;
  std::vector<std::pair<double, std::string>> x_marks;
  double x_from, x_to;
  double y_from, y_to;  ///< what is outside is cut off
  bool has_marks;       ///< marks points and draws their bands as bars
  std::vector<chart_curve> curves;
};

/// Marks of an axis: at most some 8 round numbers between two.
std::vector<double> round_numbers(double from, double to);

/// The chart as one element. number: of the chart in its page
std::string svg_of(chart const&, int number);
