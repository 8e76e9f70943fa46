// SPDX-License-Identifier: BSL-1.0
//
// A drawing as an SVG picture in the style of the papers: a row per rank, time from left to right,
// micro-batch numbers in the boxes, memory curves below. One file without scripts, for a page, a
// slide or a paper.
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <utility>

#include <pipe/report/drawing.hpp>
#include <pipe/report/escape.hpp>
#include <pipe/report/palette.hpp>
#include <pipe/report/text_table.hpp>

namespace pp {

namespace drawings {

/// Options of an SVG picture.
struct svg_options {
  int width = 1000;        ///< pixels, at least 400
  bool critical = false;   ///< outlines the critical path
  bool transfers = false;  ///< draws a line from each sender to its receiver
  bool memory = true;      ///< draws memory curves
};

}  // namespace drawings

namespace detail {

/// Distance between the marks of an axis from 0 to `end` with at most `most` marks: 1, 2 or 5 times
/// a power of ten.
inline long mark_distance(long end, int most) {
  for (long power = 1;; power *= 10)
    for (long const digit : {1, 2, 5})
      if (end / (digit * power) <= most || power > end) return digit * power;
}

/// Writer of one picture.
///
/// units: pixels
/// law:   no box leaves the rectangle of its row; widths of boxes are proportional to times
/// law:   no text leaves the picture: the legend takes as many lines as it needs
class svg_picture {
 public:
  /// Keeps references to both.
  svg_picture(drawing const& d, svg_options const& options)
      : d_(d), o_(options), ranks_(d.ranks.size()),
        row_(ranks_ == 0 ? 24
                         : std::clamp(largest_rows / double(ranks_), smallest_row, largest_row)),
        gap_(row_ >= 12  ? 4
             : row_ >= 6 ? 1
                         : 0),
        left_(ranks_ == 0 ? 64 : std::max(64.0, 8 + width_of(d.name_of(ranks_ - 1)))),
        plot_(std::max(400, options.width) - left_ - right),
        scale_(plot_ / double(std::max(1L, d.makespan))) {
    double const below_title = lines(24, "title", title_width, 19, d_.words.title),
                 below_summary = lines(below_title, "note", digit_width, 15, summary_of(d_));
    top_ = legend(below_summary - 2);
    head_ = std::exchange(text_, {});
    rows_end_ = top_ + double(ranks_) * row_;
  }

  /// The picture: the parts are painted in this order, later ones over earlier ones.
  /// needs: called once, as the parts are appended to one text
  std::string str() {
    double const height =
        rows_end_ + axis_height + (o_.memory ? memory_gap + memory_height + 10 : 0);
    std::string const size = number(plot_ + left_ + right) + " " + number(height);
    add("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 ", size, "\" width=\"",
        number(plot_ + left_ + right), "\" height=\"", number(height),
        "\" role=\"img\" aria-label=\"",
        xml_escaped(d_.words.title.empty() ? "A schedule" : d_.words.title), "\">\n");
    style();
    text_ += "<rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n";
    text_ += head_;
    rows();
    axis();
    if (o_.transfers) transfers();
    if (d_.floor.time > 0)
      add("<path class=\"floor\" d=\"M", number(x_of(d_.floor.time)), " ", number(top_ - 4), "V",
          number(rows_end_ + 4), "\"/>\n");
    if (o_.memory) memory();
    text_ += "</svg>\n";
    return text_;
  }

 private:
  static constexpr double right = 24, legend_line = 20, largest_rows = 768, smallest_row = 1,
                          largest_row = 28;
  static constexpr double axis_height = 30, memory_gap = 28, memory_height = 96;
  // digit_width: upper bound of a character of the 11 pixel font, and so for digits of 8 pixels and
  // the bold title of 15.
  static constexpr double least_between_names = 14, digit_width = 6.8, small_digit_width = 5.2,
                          title_width = 10.5;
  // mark_of_no_time: width of an action without duration.
  static constexpr double outline = 2.2, mark_of_no_time = 3;

  /// The style sheet: one class per kind of action and shade, gradients for B and W in one, a
  /// pattern for recomputation.
  void style() {
    auto const rule = [&](std::string const& of, std::string const& what) {
      add(of, "{", what, "}");
    };
    text_ += "<style>";
    rule("text", "font:11px 'DejaVu Sans',Verdana,Helvetica,Arial,sans-serif;fill:" + hex_of(ink));
    rule(".title", "font-size:15px;font-weight:bold");
    rule(".note,.axis", "fill:#4b5563");
    rule(".paper,.light", "fill:#fff!important");
    rule(".box .small", "font-size:8px");
    rule(".idle", "fill:#fff;stroke:#d1d5db;stroke-width:.75");
    rule(".axis path,.grid", "stroke:#d1d5db;stroke-width:.75;fill:none");
    rule(".box text", "text-anchor:middle;pointer-events:none");
    rule(".box rect,.key", "stroke:#fff;stroke-width:" + std::string(gap_ > 1 ? ".8" : "0"));
    rule(".critical", is_outlined() ? "fill:none;stroke:#d11149;stroke-width:" + number(outline)
                                    : "fill:#d11149");
    if (has_pairs()) rule(".pair", "fill:none;stroke:#111827;stroke-width:1.4");
    rule(".transfer", "fill:none;stroke:#111827;stroke-width:.9;opacity:.6");
    rule(".curve", "fill:none;stroke-width:1.6");
    if (d_.floor.time > 0)
      rule(".floor", "fill:none;stroke:#d11149;stroke-width:1.4;stroke-dasharray:5 3");
    for (int kind = 0; kind < action_kinds; ++kind)
      for (int shade = 0; shade < shades(); ++shade) {
        std::string const name = class_of(action_kind(kind), shade);
        std::string fill = "fill:";
        if (has_pattern(action_kind(kind)))
          fill.append("url(#").append(name).append(")");
        else
          fill += hex_of(fill_of(action_kind(kind), shade));
        rule("." + name, fill);
      }
    text_ += "</style>\n<defs>";
    for (int shade = 0; shade < shades(); ++shade) {
      std::string const b = hex_of(fill_of(action_kind::backward_input, shade));
      std::string const w = hex_of(fill_of(action_kind::backward_weight, shade));
      add("<linearGradient id=\"", class_of(action_kind::backward, shade),
          "\"><stop offset=\".5\" stop-color=\"", b, "\"/><stop offset=\".5\" stop-color=\"", w,
          "\"/></linearGradient>");
      add("<pattern id=\"", class_of(action_kind::recompute, shade),
          "\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" "
          "patternTransform=\"rotate(45)\"><rect "
          "width=\"6\" height=\"6\" fill=\"",
          hex_of(fill_of(action_kind::recompute, shade)),
          "\"/><rect width=\"1.6\" height=\"6\" fill=\"#8b929c\"/></pattern>");
    }
    text_ += "</defs>\n";
  }

  /// Words from the ordinate y down, in lines that end after commas. Returns the next ordinate.
  double lines(double y, char const* style, double character, double height,
               std::string const& words) {
    auto const width = std::size_t((plot_ + right) / character);
    std::string all = wrapped(words, width, 0);
    for (std::size_t begin = 0, end = 0; end != all.npos; begin = end + 1, y += height) {
      end = all.find('\n', begin);
      text(style, left_, y, "start", all.substr(begin, end == all.npos ? end : end - begin));
    }
    return y;
  }

  /// The legend from the ordinate y down: kinds and shades that occur, with their colours, from
  /// left to right, in lines. Returns the ordinate of the first row.
  double legend(double y) {
    double x = left_;
    auto const entry = [&](std::string const& style, std::string const& meaning) {
      double const width = 24 + width_of(meaning);
      if (x > left_ && x + width > left_ + plot_ + right) x = left_, y += legend_line;
      add("<rect class=\"", style, "\" x=\"", number(x), "\" y=\"", number(y),
          "\" width=\"18\" height=\"13\"/>");
      text("note", x + 24, y + 10.5, "start", meaning);
      x += width + 14;
    };
    for (int kind = 0; kind < action_kinds; ++kind)
      if (occurs(action_kind(kind)))
        entry("key " + class_of(action_kind(kind), 0),
              std::string(short_name(action_kind(kind))) + " " + long_name(action_kind(kind)));
    entry("idle", "idle");
    for (int shade = 1; shade < shades(); ++shade)
      entry("key " + class_of(action_kind::forward, shade), name_of_shade(shade));
    if (has_pairs()) entry("pair", "together");
    if (o_.critical) entry("critical", "critical path");
    if (d_.floor.time > 0) entry("floor", "no order ends before");
    return y + 28;
  }

  /// A row per rank: boxes of actions, then outlines of pairs and critical ones, then marks of
  /// actions that take no time. Every `every`-th rank is named, so that names do not overlap.
  void rows() {
    std::size_t const every =
        std::size_t(mark_distance(long(ranks_), int(double(ranks_) * row_ / least_between_names)));
    double const edge = is_outlined() ? outline / 2 : 0;
    if (gap_ == 0) add("<rect class=\"idle\"", frame(left_, top_, plot_, rows_end_ - top_), "/>\n");
    for (std::size_t rank = 0; rank < ranks_; ++rank) {
      double const y = y_of(int(rank)), height = row_ - gap_;
      if (rank % every == 0)
        text("note", left_ - 8, y + std::max(height, 10.0) / 2 + 4, "end", d_.name_of(rank));
      if (gap_ > 0) add("<rect class=\"idle\"", frame(left_, y, plot_, height), "/>\n");
      std::string outlines, marks;  // painted over the boxes, in this order
      text_ += "<g class=\"box\">\n";
      drawn_action const* before = nullptr;
      for (drawn_action const& a : d_.ranks[rank].actions) {
        if (before != nullptr && before->what.with_next && is_outlined())
          outlines += "<rect class=\"pair\"" +
                      frame(x_of(before->start), y, x_of(a.end) - x_of(before->start), height) +
                      "/>\n";
        before = &a;
        bool const takes_time = a.end > a.start;
        double const width = takes_time ? double(a.end - a.start) * scale_ : mark_of_no_time;
        double const x =
            std::min(takes_time ? x_of(a.start) : std::max(left_, x_of(a.start) - width / 2),
                     left_ + plot_ - width);
        std::string const meaning = name_of_action(a.what) + ": " +
                                    readable_amount(a.start, d_.words.time_unit) + " to " +
                                    readable_amount(a.end, d_.words.time_unit);
        std::string const box = "<rect class=\"" + class_of(a.what.kind, a.shade) + "\"" +
                                frame(x, y, width, height) + "><title>" + xml_escaped(meaning) +
                                "</title></rect>";
        (takes_time ? text_ : marks) += box;
        if (takes_time) label(a, x + width / 2, y + height / 2 + 4, width, height);
        (takes_time ? text_ : marks) += "\n";
        if (o_.critical && a.critical)
          outlines += "<rect class=\"critical\"" +
                      frame(x + edge, y + edge, std::max(0.0, width - 2 * edge),
                            std::max(0.0, height - 2 * edge)) +
                      "/>\n";
      }
      text_ += "</g>\n" + outlines;
      if (!marks.empty()) add("<g class=\"box\">\n", marks, "</g>\n");
    }
  }

  /// The micro-batch number, if it fits completely: in small digits, where it fits in these only.
  void label(drawn_action const& a, double x, double y, double width, double height) {
    std::string const shown = std::to_string(a.what.micro_batch);
    auto const digits = double(shown.size());
    if (height < 12 || width < small_digit_width * digits + 1) return;
    bool const is_small = width < digit_width * digits + 2;
    std::string style = is_small ? "small" : "";
    if (text_on(fill_of(a.what.kind, a.shade)) == white) style += is_small ? " light" : "light";
    add("<text", style.empty() ? style : " class=\"" + style + "\"", " x=\"", number(x), "\" y=\"",
        number(is_small ? y - 1 : y), "\">", shown, "</text>");
  }

  /// The time axis below the rows, with at most one mark per 90 pixels.
  void axis() {
    text_ += "<g class=\"axis\">\n";
    long const distance = mark_distance(d_.makespan, int(plot_ / 90));
    for (long t = 0; t <= d_.makespan; t += distance) {
      add("<path d=\"M", number(x_of(t)), " ", number(rows_end_), "v5\"/>");
      text("axis", x_of(t), rows_end_ + 18, "middle", readable_amount(t, d_.words.time_unit));
    }
    text_ += "</g>\n";
  }

  /// A line for each transfer, from the end of one action to the start of the other.
  void transfers() {
    double const middle = (row_ - gap_) / 2;
    text_ += "<path class=\"transfer\" d=\"";
    for (drawn_transfer const& t : d_.transfers)
      add("M", number(x_of(d_.ready(t.from_rank, t.from))), " ", number(y_of(t.from_rank) + middle),
          "L", number(x_of(d_.at(t.to_rank, t.to).start)), " ", number(y_of(t.to_rank) + middle));
    text_ += "\"/>\n";
  }

  /// Memory curves of all ranks in one chart: step functions, with labels of peaks at the left and
  /// of ranks above.
  void memory() {
    double const ceiling = rows_end_ + axis_height + memory_gap, floor = ceiling + memory_height;
    long const peak = std::max(1L, d_.peak_memory());
    auto const y_of_amount = [&](long live) {
      return floor - double(live) / double(peak) * memory_height;
    };
    double x = left_;
    double const width = ranks_ == 0 ? 90 : std::max(90.0, 46 + width_of(d_.name_of(ranks_ - 1)));
    auto const curve = [&](std::size_t rank) {
      add("<path class=\"curve\" stroke=\"", hex_of(colour_of_rank(rank, ranks_)), "\"");
      if (auto const dashes = dashes_of_rank(rank); dashes[0] > 0) {
        add(" stroke-dasharray=\"");
        for (std::size_t i = 0; i < dashes.size(); ++i)
          add(i > 0 ? " " : "", std::to_string(dashes[i]));
        add("\"");
      }
      add(" d=\"M");
    };
    auto const named = [&](std::size_t rank) {
      curve(rank);
      add(number(x), " ", number(ceiling - 16), "h26\"/>");
      text("note", x + 32, ceiling - 12, "start", d_.name_of(rank));
      x += width;
    };
    text("note", left_ - 8, ceiling - 12, "end", "memory");
    std::size_t const most = std::size_t(std::clamp(plot_ / width, 1.0, 8.0)),
                      every = (ranks_ + most - 1) / most;
    for (std::size_t rank = 0; rank < ranks_; rank += every) named(rank);
    for (long const live : {0L, peak}) {
      text_ += "<path class=\"grid\" d=\"M" + number(left_) + " " + number(y_of_amount(live)) +
               "h" + number(plot_) + "\"/>";
      text("axis", left_ - 8, y_of_amount(live) + 4, "end",
           readable_amount(live, d_.words.memory_unit));
    }
    text_ += "\n";
    for (std::size_t rank = 0; rank < ranks_; ++rank) {
      curve(rank);
      add(number(left_), " ", number(floor));
      for (memory_point const& p : d_.ranks[rank].memory)
        add("H", number(x_of(p.time)), "V", number(y_of_amount(p.live)));
      add("H", number(left_ + plot_), "\"/>\n");
    }
  }

  /// The number of shades in the picture: chunks of a rank, or directions.
  int shades() const {
    int most = 0;
    for (drawn_rank const& r : d_.ranks)
      for (drawn_action const& a : r.actions) most = std::max(most, a.shade);
    return most + 1;
  }
  bool has_pairs() const {
    for (drawn_rank const& r : d_.ranks)
      for (drawn_action const& a : r.actions)
        if (a.what.with_next) return true;
    return false;
  }
  bool occurs(action_kind kind) const {
    for (drawn_rank const& r : d_.ranks)
      for (drawn_action const& a : r.actions)
        if (a.what.kind == kind) return true;
    return false;
  }
  /// Whether rows are high enough for outlines; otherwise critical actions are filled.
  bool is_outlined() const { return gap_ > 1; }
  /// Whether boxes of a kind are filled with a gradient or a pattern instead of one colour.
  static bool has_pattern(action_kind kind) {
    return kind == action_kind::backward || kind == action_kind::recompute;
  }
  /// The name of a style class: the kind's short name and the shade.
  static std::string class_of(action_kind kind, int shade) {
    std::string name = short_name(kind);
    name += std::to_string(shade);
    return name;
  }

  /// An upper bound of the width of words.
  static double width_of(std::string const& words) { return digit_width * double(words.size()); }
  /// The abscissa of a time, and the upper edge of a rank's row.
  double x_of(long time) const { return left_ + double(time) * scale_; }
  double y_of(int rank) const { return top_ + rank * row_; }

  /// The attributes of a rectangle.
  static std::string frame(double x, double y, double width, double height) {
    return " x=\"" + number(x) + "\" y=\"" + number(y) + "\" width=\"" + number(width) +
           "\" height=\"" + number(height) + "\"";
  }
  /// A number with up to two digits after the point.
  static std::string number(double x) {
    std::string text = readable_real(x, 2);
    while (text.back() == '0') text.pop_back();
    if (text.back() == '.') text.pop_back();
    return text;
  }
  /// Appends markup as it is.
  template <class... Parts>
  void add(Parts const&... parts) {
    ((text_ += parts), ...);
  }
  /// Text at a point; `what` is escaped here.
  void text(char const* style, double x, double y, char const* anchor, std::string const& what) {
    add("<text class=\"", style, "\" x=\"", number(x), "\" y=\"", number(y), "\" text-anchor=\"",
        anchor, "\">", xml_escaped(what), "</text>\n");
  }

  drawing const& d_;
  svg_options const& o_;
  std::size_t ranks_;
  double row_, gap_, left_, plot_, scale_, top_ = 0, rows_end_ = 0;
  std::string head_, text_;
};

}  // namespace detail

namespace drawings {

/// A drawing as an SVG document.
///
/// cost: one rectangle with a text per action
inline std::string as_svg(drawing const& d, svg_options const& options = {}) {
  return detail::svg_picture(d, options).str();
}

}  // namespace drawings

}  // namespace pp
