// SPDX-License-Identifier: BSL-1.0
//
// The search for steps that overlap. The span of an order is an upper bound on the order's period,
// and mostly equal to the period. So the best order by the span is improved further, by the pace of
// a second step.
#pragma once

#include <type_traits>

#include <pipe/schedule/period.hpp>
#include <pipe/schedule/search/schedule_search.hpp>

namespace pp::detail {

/// Fills `table` with the order that search() finds, improved by its period.
template <pipeline_problem Problem, action_table Table>
void improve_period(Problem const& problem, Table& table, search_options const& options) {
  Table first = table;
  search(problem, first, options);
  search_problem const question(problem, table.where, options.want, options.limit);
  search_actions actions(question);
  search_order order(actions), best(actions);
  long busiest = 0;
  for (int rank = 0; rank < problem.ranks; ++rank) {
    long work = 0;
    for (int i = 0; i < first.size(rank); ++i) {
      work += problem.time(first.at(rank, i));
      order.push(rank, first.at(rank, i));
    }
    busiest = work > busiest ? work : busiest;
  }
  if (first.size(0) == 0) return;
  best.assign(order);
  step_period found = period_of(problem, first);
  order_times times(actions);
  search_dice roll;
  constexpr int rounds = 8;
  for (int round = 0; round < rounds && found.time > busiest * found.steps; ++round) {
    for (int step = 0; step < 3; ++step)
      if (times.play(order).possible()) actions.begin_after(times.rank_end);
    order_tuner(actions).improve(order, {options.budget(actions.count) / rounds, busiest}, roll);
    step_period const now = period_of(problem, order);
    if (!(now < found)) continue;
    found = now;
    best.assign(order);
  }
  for (int rank = 0; rank < problem.ranks; ++rank)
    for (int i = 0; i < best.size(rank); ++i) table.push(rank, best.at(rank, i));
}

/// Searches as search() does, for the shortest period.
///
/// law:  the period is at most that of the order which search() finds by the stage-local span with
///       the same effort; in a constant evaluation that order is the result
/// cost: up to twice that of search()
template <pipeline_problem Problem, action_table Table>
constexpr void search_by_period(Problem const& problem, Table& table,
                                search_options const& options) {
  search_options by_span = options;
  by_span.want = objective::stage_local_span;
  if (std::is_constant_evaluated()) return search(problem, table, by_span);
  improve_period(problem, table, by_span);
}

}  // namespace pp::detail
