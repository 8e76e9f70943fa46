// SPDX-License-Identifier: BSL-1.0
//
// Several steps of a table as one table, to prove, simulate and draw steps that overlap.
#pragma once

#include <type_traits>

#include <pipe/base/error.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/schedule/dynamic_table.hpp>
#include <pipe/schedule/problem.hpp>
#include <pipe/schedule/required.hpp>
#include <pipe/schedule/slots.hpp>

namespace pp {

namespace schedules {

/// The problem of `steps` steps: `steps` times the micro-batches.
template <pipeline_problem Problem>
constexpr Problem repeated(Problem problem, int steps) {
  problem.micro_batches *= steps;
  return problem;
}

/// `steps` steps of a table, one after the other without a barrier: each rank begins the next step
/// right after its last action of this step. A step is a run of the table for each of its
/// accumulations. Micro-batches and versions of weights are numbered throughout, and if the table
/// trains, each step ends with the updates of the rank's chunks.
///
/// law:    if validate(problem, table), then validate(repeated(problem, steps * accumulations),
///         this)
/// throws: pp::error if `steps` or `accumulations` < 1, the table has several mini-batches, holders
///         of a chunk would change from step to step, or the result would have more than
///         most_actions
template <pipeline_problem Problem, detail::action_table Table>
auto repeated(Problem const& problem, Table const& table, int steps, int accumulations = 1) {
  using detail::holders, detail::throw_error;
  detail::require_actions(problem, table, detail::unbounded_slots{});
  int const ranks = problem.ranks, m = problem.micro_batches;
  if (steps < 1) throw_error<error>({"repeated steps: expected at least 1, got ", steps});
  if (accumulations < 1)
    throw_error<error>({"accumulations of a step: expected at least 1, got ", accumulations});
  if (table.mini_batch > 0)
    throw_error<error>({"repeated steps: expected a table of one step, got a run"});
  for (int c = 0; c < problem.chunks; ++c)
    if (int const n = replicas(table.where, c); n > 1 && m % n != 0)
      throw_error<error>({"repeated steps: expected a multiple of ", n, " micro-batches, as chunk ",
                          c, " is on ", n, " ranks, got ", m});
  long const actions = detail::count_actions(table) + holders(table.where, problem.chunks);
  int const runs = steps * accumulations, of_step = accumulations * m;
  if (actions * runs > most_actions || long(m) * problem.chunks * runs > most_actions)
    throw_error<error>({"repeated steps: ", runs, " steps of ", actions,
                        " actions exceed the limit of ", most_actions, " actions"});

  using where = std::remove_cvref_t<decltype(Table::where)>;
  auto run = detail::dynamic_table_on<where>(ranks, table.where, table.trains);
  run.mini_batch = table.trains ? of_step : 0;
  run.drift = table.drift;
  for (int n = 0; n < runs; ++n) {
    int const step = n / accumulations, end = (n + 1) * m;
    for (int rank = 0; rank < ranks; ++rank)
      for (int i = 0; i < table.size(rank); ++i) {
        action a = table.at(rank, i);
        if (a.kind == action_kind::update) continue;
        a.micro_batch += n * m;
        a.version = table.trains ? step : 0;
        run.push(rank, a);
      }
    for (int c = 0; c < problem.chunks && table.trains && end % of_step == 0; ++c)
      for (int mb = end - replicas(table.where, c); mb < end; ++mb)
        run.push(rank_of(table.where, ranks, c, mb), {action_kind::update, c, mb, step + 1});
  }
  return run;
}

}  // namespace schedules

}  // namespace pp
