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

  Table first = table;
  search(problem, first, by_span);
  auto order = search_order(problem, table.where, options.limit, objective::period);
  long busiest = 0, actions = 0;
  for (int rank = 0; rank < problem.ranks; ++rank) {
    long work = 0;
    for (int i = 0; i < first.size(rank); ++i, ++actions) {
      work += problem.time(first.at(rank, i));
      order.push(rank, first.at(rank, i));
    }
    busiest = work > busiest ? work : busiest;
  }
  bool is_better = false;
  if (actions > 0) {
    step_period const found = period_of(problem, first);
    search_dice roll{};
    if (found.time > busiest * found.steps) {
      order.improve(search_order::tries_of(options.effort, actions), busiest, roll);
      is_better = period_of(problem, order) < found;
    }
  }
  for (int rank = 0; rank < problem.ranks; ++rank)
    for (int i = 0; i < first.size(rank); ++i)
      table.push(rank, is_better ? order.at(rank, i) : first.at(rank, i));
}

}  // namespace pp::detail
