// SPDX-License-Identifier: BSL-1.0
//
// Draws who computes what when, as text: a line per rank, time from left to right. The same drawing serves a schedule
// on paper and a run that was measured, so the two can be laid side by side.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <pipe/runtime/machine.hpp>
#include <pipe/schedule/simulate.hpp>
#include <pipe/schedule/table.hpp>

namespace pp {

/// How an action looks: a forward as its micro-batch's last digit, a backward as a letter, a weight gradient as a
/// capital.
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

/// What the characters mean in a schedule that has weight gradients of their own, or none.
constexpr char const* drawing_legend(bool splits_backward) {
  return splits_backward
             ? "0 1 2 ... forward of micro-batch 0 1 2 ..., a b c ... backward, A B C ... weight gradient, . idle"
             : "0 1 2 ... forward of micro-batch 0 1 2 ..., a b c ... backward, . idle";
}

/// One line of `width` characters per rank for the time from 0 to `end`. A column shows what the rank does in its
/// middle.
class timeline_drawing {
 public:
  timeline_drawing(int ranks, long end, int width)
      : end_(end > 0 ? end : 1), width_(width), lines_(std::size_t(ranks), std::string(std::size_t(width), '.')) {}

  void add(int rank, action const& a, long start, long end) {
    for (long column = first_column(start), after = first_column(end); column < after && column < width_; ++column)
      lines_[std::size_t(rank)][std::size_t(column)] = drawn(a);
  }

  /// law: every line has the same length; lines are labelled `rank N`
  std::string str() const {
    std::size_t const digits = std::to_string(lines_.size() - 1).size();
    std::string text;
    for (std::size_t rank = 0; rank < lines_.size(); ++rank) {
      std::string const number = std::to_string(rank);
      text += "rank " + std::string(digits - number.size(), ' ') + number + "  " + lines_[rank] + "\n";
    }
    return text;
  }

 private:
  /// The first column whose middle is at or after `time`.
  long first_column(long time) const {
    double const column = double(time) * double(width_) / double(end_) - 0.5;
    return column > 0 ? long(column) + (column > double(long(column)) ? 1 : 0) : 0;
  }

  long end_, width_;
  std::vector<std::string> lines_;
};

/// A schedule as it was simulated.
template <action_table Table, class Rows>
std::string draw(Table const& table, timeline<Rows> const& when, int width = 88) {
  timeline_drawing drawing(table.ranks(), when.makespan, width);
  for (int rank = 0; rank < table.ranks(); ++rank)
    for (int i = 0; i < when.spans.size(rank); ++i)
      drawing.add(rank, table.at(rank, i), when.spans.at(rank, i).start, when.spans.at(rank, i).end);
  return drawing.str();
}

/// What a trainer's ranks really did in its last run.
template <class Trainer>
std::string draw_last_run(Trainer const& trainer, int width = 88) {
  constexpr int ranks = Trainer::compiled::ranks;
  long end = 0;
  for (int rank = 0; rank < ranks; ++rank)
    for (executed_action const& e : trainer.executed(rank))
      if (end < e.end) end = e.end;
  timeline_drawing drawing(ranks, end, width);
  for (int rank = 0; rank < ranks; ++rank)
    for (executed_action const& e : trainer.executed(rank)) drawing.add(rank, e.what, e.start, e.end);
  return drawing.str();
}

}  // namespace pp
