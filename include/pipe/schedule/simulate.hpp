// SPDX-License-Identifier: BSL-1.0
//
// The timed simulation of a table. Each action starts as soon as its rank is free and its inputs
// have arrived, so the makespan is the longest path through the table's actions, their data and the
// ranks' order. Two bubbles are reported, always by name, because the literature mixes them. One is
// over the makespan, which a step with a barrier pays. The other is over the stage-local span, and
// is right only where each rank may start its next step as soon as that rank is done with the
// current step.
#pragma once

#include <pipe/schedule/execution.hpp>

namespace pp {

namespace schedules {

/// The start and the end of an action, in the unit of the problem's times. The two actions of a
/// pair divide its time, and the results of both are there at its end.
struct time_span {
  long start = 0;
  long end = 0;
};

/// The times of a table: `spans.at(rank, position)` is the span of that action, from 0.
template <class Rows>
struct timeline {
  Rows spans;
  bool complete = false;  ///< false: the table deadlocks; the spans are those before the deadlock
  long makespan = 0;      ///< the end of the last action

  constexpr int ranks() const { return spans.ranks(); }

  /// The time that a rank computes. throws: pp::error if there is no such rank
  constexpr long busy(int rank) const {
    detail::require_rank(spans, rank);
    if constexpr (requires { spans.busy(rank); })
      return spans.busy(rank);
    else
      return sum_of_spans(rank);
  }

  /// The time from 0 to the makespan that a rank does not compute.
  constexpr long idle(int rank) const { return makespan - busy(rank); }

  constexpr long total_busy() const {
    long sum = 0;
    for (int rank = 0; rank < ranks(); ++rank) sum += busy(rank);
    return sum;
  }

  /// The longest time from the start of a rank's first action to the end of its last.
  constexpr long stage_local_span() const {
    long longest = 0;
    for (int rank = 0; rank < ranks(); ++rank) {
      long const span = local_span(rank);
      if (span > longest) longest = span;
    }
    return longest;
  }

  /// The idle share of all ranks' time from 0 to the makespan.
  constexpr double bubble_by_makespan() const { return idle_share(makespan); }

  /// The idle share of all ranks' time when each takes the stage-local span for a step. source: Qi
  /// et al., 2024
  constexpr double bubble_by_stage_local_span() const { return idle_share(stage_local_span()); }

 private:
  constexpr long sum_of_spans(int rank) const {
    long sum = 0;
    for (int i = 0; i < spans.size(rank); ++i)
      sum += spans.at(rank, i).end - spans.at(rank, i).start;
    return sum;
  }
  constexpr long local_span(int rank) const {
    if constexpr (requires { spans.local_span(rank); }) {
      return spans.local_span(rank);
    } else {
      int const size = spans.size(rank);
      return size == 0 ? 0 : spans.at(rank, size - 1).end - spans.at(rank, 0).start;
    }
  }
  constexpr double idle_share(long cost) const {
    if (cost == 0) return 0;
    return 1 - static_cast<double>(total_busy()) / (static_cast<double>(cost) * ranks());
  }
};

}  // namespace schedules

namespace detail {

/// throws: pp::error if a timeline has another number of ranks than the table, or more spans than
///         the table has actions
template <action_table Table, class Rows>
constexpr void require_spans(Table const& table, timeline<Rows> const& when) {
  if (std::is_constant_evaluated()) return;
  if (when.ranks() != table.ranks())
    throw_error<error>(
        {"the timeline: expected ", table.ranks(), " ranks, as its table has, got ", when.ranks()});
  for (int rank = 0; rank < table.ranks(); ++rank)
    if (when.spans.size(rank) > table.size(rank))
      throw_error<error>({"the timeline of rank ", rank, ": expected at most ", table.size(rank),
                          " actions, as its table has, got ", when.spans.size(rank)});
}

}  // namespace detail

namespace detail {

/// The timeline of a table whose spans are pushed to `spans`, which are empty rows.
template <class Rows, pipeline_problem Problem, action_table Table, class Slots = unbounded_slots>
constexpr timeline<Rows> simulate_into(Rows spans, Problem const& problem, Table const& table,
                                       Slots const& slots = Slots{}) {
  auto result = timeline<Rows>{static_cast<Rows&&>(spans)};
  auto paper = execution<Problem, Table, Slots>(problem, table, slots);
  result.complete = paper.run([&](int rank, long start, long end, long) {
    result.spans.push(rank, time_span{start, end});
    if (end > result.makespan) result.makespan = end;
  });
  return result;
}

}  // namespace detail

namespace schedules {

/// The timeline of a table over channels of `slots[boundary]` slots; without `slots` no rank waits
/// for a slot.
///
/// needs:  validate(problem, table), at least check_shape and check_complete
/// throws: pp::error if an action's chunk or micro-batch, a cost or a boundary's slots do not exist
template <pipeline_problem Problem, detail::action_table Table,
          class Slots = detail::unbounded_slots>
constexpr auto simulate(Problem const& problem, Table const& table, Slots const& slots = Slots{}) {
  return detail::simulate_into(table.template like<time_span>(), problem, table, slots);
}

}  // namespace schedules

}  // namespace pp
