// SPDX-License-Identifier: BSL-1.0
//
// The times of a table beside their lower bounds: how far a schedule is from the best possible in
// its memory.
#pragma once

#include <pipe/schedule/floors.hpp>
#include <pipe/schedule/in_flight.hpp>
#include <pipe/schedule/objective.hpp>
#include <pipe/schedule/simulate.hpp>

namespace pp {

namespace schedules {

/// The times of a table and their lower bounds: no schedule of its placement whose ranks need at
/// most `memory` is below the floor.
struct certificate {
  flush_floor floor{}, achieved{};
  long memory = 0;  ///< of the rank that has the most, in the unit of memory_change; 0: any amount

  constexpr long time(objective want = objective::stage_local_span) const {
    return want == objective::makespan ? achieved.makespan : achieved.stage_local_span;
  }
  /// The most time that a better schedule could save.
  constexpr long gap(objective want = objective::stage_local_span) const {
    return time(want) - (want == objective::makespan ? floor.makespan : floor.stage_local_span);
  }
  /// The same as a share of the time, from 0 to 1.
  constexpr double gap_share(objective want = objective::stage_local_span) const {
    return time(want) > 0 ? static_cast<double>(gap(want)) / static_cast<double>(time(want)) : 0;
  }
  /// Whether no schedule is better.
  constexpr bool proved(objective want = objective::stage_local_span) const {
    return gap(want) == 0;
  }
};

/// The certificate of a table whose timeline and peak memory are known: under the problem's memory
/// limit, or if the problem has none, in `peak`, the memory that the table's fullest rank needs.
///
/// needs: validate(problem, table); the table trains
template <pipeline_problem Problem, detail::action_table Table, class Rows>
constexpr certificate certify(Problem const& problem, Table const& table,
                              timeline<Rows> const& when, long peak) {
  static_assert(!detail::is_uneven<Problem>, "floors are of micro-batches of equal times");
  Problem limited = problem;
  if (limited.limit == 0) limited.limit = peak;
  long most = 0;
  for (int rank = 0; rank < problem.ranks; ++rank)
    if (long const own = detail::memory_limit(limited, rank); own > most) most = own;
  return certificate{floor_of(limited, table.where),
                     flush_floor{when.makespan, when.stage_local_span()}, most};
}

/// The certificate of a table whose timeline is known.
template <pipeline_problem Problem, detail::action_table Table, class Rows>
constexpr certificate certify(Problem const& problem, Table const& table,
                              timeline<Rows> const& when) {
  long peak = 0;
  for (int rank = 0; rank < table.ranks() && problem.limit == 0; ++rank)
    if (long const needed = peak_memory(problem, table, rank); needed > peak) peak = needed;
  return certify(problem, table, when, peak);
}

/// The certificate of a table.
template <pipeline_problem Problem, detail::action_table Table>
constexpr certificate certify(Problem const& problem, Table const& table) {
  return certify(problem, table, simulate(problem, table));
}

}  // namespace schedules

}  // namespace pp
