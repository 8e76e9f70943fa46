// SPDX-License-Identifier: BSL-1.0
//
// What a schedule is asked to solve: how many ranks, chunks and micro-batches, and what each action costs. It names no
// layers and no schedule, so one problem can be given to every policy and the answers compared. Times are integers in
// any unit (FLOPs, nanoseconds): sums of them are exact, so closed forms can be proved with `==`.
#pragma once

#include <concepts>
#include <cstddef>

#include <pipe/base/static_vector.hpp>
#include <pipe/schedule/action.hpp>

namespace pp {

/// What one chunk costs per micro-batch. Times are at least 0; memory is optional, in any unit.
struct chunk_cost {
  long forward = 1;
  long backward_input = 1;
  long backward_weight = 1;
  long stash = 0;             ///< kept from the start of F to the end of B (or BW)
  long stash_for_weight = 0;  ///< the part of `stash` that is kept on from B to the end of W
};

/// Costs of a model whose chunks are all alike: one value, whatever the number of chunks.
struct same_cost {
  chunk_cost each{};
  constexpr chunk_cost const& operator[](std::size_t) const { return each; }
};

/// `Costs` is anything indexed by chunk: `same_cost`, `static_vector<chunk_cost, N>`, `std::vector<chunk_cost>`.
template <class Costs = same_cost>
struct problem {
  int ranks = 1;
  int chunks = 1;
  int micro_batches = 1;
  long hop = 0;  ///< time from the end of an action to the moment another rank can use its result
  Costs costs{};

  constexpr chunk_cost const& cost(int chunk) const { return costs[static_cast<std::size_t>(chunk)]; }

  /// Time from the end of an action on one rank until its result can be used on another.
  constexpr long hop_time(int from_rank, int to_rank) const { return from_rank == to_rank ? 0 : hop; }

  /// How long an action takes. The update is outside a schedule's time: every schedule pays it once, alike.
  constexpr long time(action const& a) const {
    using enum action_kind;
    chunk_cost const& c = cost(a.chunk);
    return a.kind == forward || a.kind == recompute ? c.forward
           : a.kind == backward                     ? c.backward_input + c.backward_weight
           : a.kind == backward_input               ? c.backward_input
           : a.kind == backward_weight              ? c.backward_weight
                                                    : 0;
  }
};

/// What the algorithms of this folder ask of a problem.
template <class P>
concept pipeline_problem = requires(P const& p, int i, action a) {
  { p.ranks + p.chunks + p.micro_batches } -> std::convertible_to<int>;
  { p.cost(i) } -> std::convertible_to<chunk_cost>;
  { p.hop_time(i, i) } -> std::same_as<long>;
  { p.time(a) } -> std::same_as<long>;
};

/// A problem whose `ranks * chunks_per_rank` chunks all cost the same.
constexpr problem<> equal_times(int ranks, int micro_batches, chunk_cost each = {}, long hop = 0,
                                int chunks_per_rank = 1) {
  return problem<>{ranks, ranks * chunks_per_rank, micro_batches, hop, same_cost{each}};
}

/// A problem with a cost for every chunk, chunk 0 first.
template <std::size_t Chunks>
constexpr auto unequal_times(int ranks, int micro_batches, chunk_cost const (&each)[Chunks], long hop = 0) {
  auto costs = static_vector<chunk_cost, Chunks>{};
  for (chunk_cost const& cost : each) costs.push_back(cost);
  return problem<static_vector<chunk_cost, Chunks>>{ranks, static_cast<int>(Chunks), micro_batches, hop, costs};
}

}  // namespace pp
