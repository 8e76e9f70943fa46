// SPDX-License-Identifier: BSL-1.0
//
// The problem of a search: ranks, chunks, micro-batches, costs, a memory limit for each rank, the
// placement and the objective. It is one type, so the code of a search is compiled once for all
// problems.
#pragma once

#include <climits>

#include <pipe/schedule/objective.hpp>
#include <pipe/schedule/placement.hpp>
#include <pipe/schedule/problem.hpp>
#include <pipe/schedule/scratch.hpp>

namespace pp::detail {

/// A copy of a problem, which is a pipeline_problem itself.
///
/// needs: replicas(where) == 1; the problem fits the placement
struct search_problem {
  static constexpr long no_limit = LONG_MAX / 4;

  int ranks, chunks, micro_batches;
  placement where;
  objective want;
  long limit = 0;                ///< of the rank that has the most memory; 0: unlimited
  scratch<chunk_cost> costs_of;  ///< by chunk
  scratch<int> holder;           ///< by chunk: its rank
  scratch<long> down, up;  ///< by boundary: the time of a value's and of a gradient's transfer
  scratch<long> room_of;   ///< by rank: its memory limit

  /// `most_memory`: a limit for every rank, beside the problem's own. `few`: another number of
  /// micro-batches.
  template <pipeline_problem Problem>
  constexpr search_problem(Problem const& problem, placement place, objective wanted,
                           long most_memory = no_limit, int few = 0)
      : ranks(problem.ranks), chunks(problem.chunks),
        micro_batches(few > 0 ? few : problem.micro_batches), where(place), want(wanted),
        costs_of(chunks), holder(chunks), down(chunks), up(chunks), room_of(ranks) {
    for (int chunk = 0; chunk < chunks; ++chunk) {
      costs_of.item[chunk] = problem.cost(chunk);
      holder.item[chunk] = rank_of(where, ranks, chunk);
    }
    for (int chunk = 0; chunk + 1 < chunks; ++chunk) {
      int const here = holder.item[chunk], there = holder.item[chunk + 1];
      down.item[chunk] = problem.hop_time(here, there, chunk);
      up.item[chunk] = problem.hop_time(there, here, chunk);
    }
    for (int rank = 0; rank < ranks; ++rank) {
      long const own = memory_limit(problem, rank);
      room_of.item[rank] = own > 0 && own < most_memory ? own : most_memory;
      if (room(rank) > limit) limit = room(rank);
    }
    if (limit == no_limit) limit = 0;
  }

  constexpr chunk_cost const& cost(int chunk) const { return costs_of.item[chunk]; }
  constexpr long room(int rank) const { return room_of.item[rank]; }
  constexpr int held() const { return chunks / ranks; }
  constexpr long actions() const { return 3L * chunks * micro_batches; }

  constexpr long hop_time(int from, int to, int boundary) const {
    return from == to ? 0 : (holder.item[boundary] == from ? down : up).item[boundary];
  }
  constexpr long time(action const& a) const {
    using enum action_kind;
    chunk_cost const& c = cost(a.chunk);
    return a.kind == forward           ? c.forward
           : a.kind == backward        ? c.backward_input + c.backward_weight
           : a.kind == backward_input  ? c.backward_input
           : a.kind == backward_weight ? c.backward_weight
                                       : 0;
  }
  constexpr long time_of_pair(action const& a, action const& b) const { return time(a) + time(b); }
};
static_assert(pipeline_problem<search_problem>);

}  // namespace pp::detail
