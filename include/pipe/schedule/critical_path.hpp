// SPDX-License-Identifier: BSL-1.0
//
// Why a step takes as long as it takes: a chain of actions, each begun the moment the one before it allowed, from time 0 to the
// makespan. To make anything else faster changes nothing.
#pragma once

#include <pipe/schedule/simulate.hpp>

namespace pp {

/// Calls use(rank, position) for the actions of a longest path, the last one first.
///
/// law:   the first action called ends at the makespan, the last one starts at 0; between an action and the one called after it
///        there is no time but a hop's
/// needs: `when` is the timeline of the table with channels that never make anyone wait, and complete
template <pipeline_problem Problem, action_table Table, class Rows, class Use>
constexpr void for_each_critical(Problem const& problem, Table const& table, timeline<Rows> const& when, Use use) {
  using enum action_kind;
  int rank = -1;
  for (int r = 0; r < table.ranks() && rank < 0; ++r)
    if (int const n = table.size(r); n > 0 && when.spans.at(r, n - 1).end == when.makespan) rank = r;
  int position = rank < 0 ? -1 : table.size(rank) - 1;
  auto const find = [&](int on, action_kind a, action_kind b, int chunk, int mb) {
    for (int i = 0; i < table.size(on); ++i)
      if (action const x = table.at(on, i); (x.kind == a || x.kind == b) && x.chunk == chunk && x.micro_batch == mb)
        return i;
    return -1;
  };
  while (position >= 0) {
    use(rank, position);
    long const start = when.spans.at(rank, position).start;
    if (position > 0 && when.spans.at(rank, position - 1).end == start) {  // it waited for its rank
      --position;
      continue;
    }
    if (start == 0) return;
    action const a = table.at(rank, position);  // it waited for what another rank handed over
    int const source = a.kind == forward ? a.chunk - 1 : a.chunk + 1;
    if (source < 0 || source >= problem.chunks) return;
    int const from = rank_of(table.where, problem.ranks, source, a.micro_batch);
    position = a.kind == forward ? find(from, forward, forward, source, a.micro_batch)
                                 : find(from, backward_input, backward, source, a.micro_batch);
    rank = from;
  }
}

}  // namespace pp
