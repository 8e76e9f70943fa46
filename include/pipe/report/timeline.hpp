// SPDX-License-Identifier: BSL-1.0
//
// A schedule drawn as text: a line per rank, time from left to right. Simulated and measured
// schedules are drawn alike, so they can be compared side by side.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <pipe/base/checked_index.hpp>
#include <pipe/report/palette.hpp>
#include <pipe/report/row_name.hpp>
#include <pipe/schedule/simulate.hpp>
#include <pipe/schedule/table.hpp>
#include <pipe/train/executed_run.hpp>

namespace pp {

namespace detail {

/// Character of an action: the last digit of the micro-batch for forward, a letter for backward, a
/// capital for a weight gradient.
constexpr char drawn(action const& a) {
  using enum action_kind;
  switch (a.kind) {
    case forward: return static_cast<char>('0' + a.micro_batch % 10);
    case backward_input:
    case backward: return static_cast<char>('a' + a.micro_batch % 26);
    case backward_weight: return static_cast<char>('A' + a.micro_batch % 26);
    case recompute: return '+';
    case update: return '*';
  }
  return '?';
}

/// Legend of the characters, with or without separate weight gradients.
constexpr char const* drawing_legend(bool splits_backward) {
  return splits_backward ? "0 1 2 ... forward of micro-batch 0 1 2 ..., a b c ... backward, A B C "
                           "... weight gradient, . idle"
                         : "0 1 2 ... forward of micro-batch 0 1 2 ..., a b c ... backward, . idle";
}

/// Escape sequence for text and background colour in the 256-colour palette (6 x 6 x 6 cube), which
/// nearly all terminals support.
template <class = void>
std::string terminal_colours(colour text, colour background) {
  auto const in_palette = [](colour c) {
    auto const sixth = [](int part) { return (part + 25) / 51; };
    return std::to_string(16 + 36 * sixth(c.red) + 6 * sixth(c.green) + sixth(c.blue));
  };
  return "\x1b[38;5;" + in_palette(text) + ";48;5;" + in_palette(background) + "m";
}

/// A text drawing: one line of `columns` characters per rank for the time from 0 to `end`. A column
/// shows the rank's action at its middle.
class timeline_drawing {
 public:
  /// `ranks`: of all replicas, which have as many each. Throws pp::error for a negative number of
  /// ranks or characters.
  template <class = void>
  timeline_drawing(int ranks, long end, int columns, int replicas = 1)
      : end_(end > 0 ? end : 1), width_(columns), replicas_(replicas) {
    if (ranks < 0 || columns < 0)
      throw_error<error>({"timeline_drawing: expected 0 or more ranks and characters, got ", ranks,
                          " ranks of ", columns, " characters"});
    lines_.assign(std::size_t(ranks), std::vector<cell>(std::size_t(columns)));
  }

  /// Draws an action. `shade`: see fill_of. Throws pp::error for a rank out of range.
  /// An action that contains the middle of no column is not shown, except an update: it takes the
  /// column before, which ends a step. Columns beyond the last are cut off.
  template <class = void>
  void add(int rank, action const& a, long start, long end, int shade = 0) {
    checked_index<error>("rank", rank, int(lines_.size()));
    long const begin = first_column(start), after = first_column(end),
               last = after < width_ ? after : width_;
    bool const is_mark = a.kind == action_kind::update && begin == after && begin > 0;
    long const first = is_mark ? begin - 1 : begin;
    for (long column = first; column < last; ++column) {
      bool const weights = a.kind == action_kind::backward &&
                           2 * column >= first + last;  // BW: B to the left, then W
      colour const fill = fill_of(weights ? action_kind::backward_weight : a.kind, shade);
      lines_[std::size_t(rank)][std::size_t(column)] = {drawn(a), fill};
    }
  }

  /// The lines, each with the label `rank N`: see name_of_row.
  ///
  /// law: without colours all lines have the same length
  template <class = void>
  std::string str(bool colours = false) const {
    std::string text;
    for (std::size_t rank = 0; rank < lines_.size(); ++rank) {
      text += name_of_row(rank, lines_.size(), replicas_, true) + "  ";
      colour now = white;
      for (cell const& c : lines_[rank]) {
        if (colours && c.fill != now)
          text += c.fill == white ? plain : terminal_colours(text_on(c.fill), c.fill);
        now = c.fill;
        text += c.letter;
      }
      text += colours && now != white ? std::string(plain) + "\n" : "\n";
    }
    return text;
  }

 private:
  /// The escape sequence that ends colours.
  static constexpr char const* plain = "\x1b[0m";
  struct cell {
    char letter = '.';
    colour fill = white;
  };

  /// The first column whose middle is at or after `time`.
  long first_column(long time) const {
    double const column = double(time) * double(width_) / double(end_) - 0.5;
    return column > 0 ? long(column) + (column > double(long(column)) ? 1 : 0) : 0;
  }

  long end_, width_;
  int replicas_;
  std::vector<std::vector<cell>> lines_;
};

}  // namespace detail

/// A simulated schedule as text. Throws pp::error for a timeline of another table, or a negative
/// width.
template <detail::action_table Table, class Rows>
std::string draw(Table const& table, schedules::timeline<Rows> const& when, int width = 88) {
  detail::require_spans(table, when);
  detail::timeline_drawing drawing(table.ranks(), when.makespan, width);
  for (int rank = 0; rank < table.ranks(); ++rank)
    for (int i = 0; i < when.spans.size(rank); ++i)
      drawing.add(rank, table.at(rank, i), when.spans.at(rank, i).start,
                  when.spans.at(rank, i).end);
  return drawing.str();
}

/// A measured run as text, such as gather_executed(trainer), which is called in all processes.
/// Throws pp::error for a negative width.
template <class = void>
std::string draw(executed_run const& run, int width = 88) {
  long end = 0;
  for (auto const& row : run.rows)
    for (executed_action const& e : row)
      if (end < e.end) end = e.end;
  detail::timeline_drawing drawing(int(run.rows.size()), end, width, run.replicas);
  for (std::size_t row = 0; row < run.rows.size(); ++row)
    for (executed_action const& e : run.rows[row]) drawing.add(int(row), e.what, e.start, e.end);
  return drawing.str();
}

}  // namespace pp
