// SPDX-License-Identifier: BSL-1.0
//
// The problem that a schedule solves: the numbers of ranks, chunks and micro-batches, and the cost
// of each action. A problem refers to no layer and no schedule, so one problem can be given to
// every policy and the results compared. Times are integers in any unit (FLOPs, nanoseconds): sums
// of times are exact, so closed forms can be proved with `==`.
#pragma once

#include <concepts>
#include <cstddef>

#include <pipe/base/static_vector.hpp>
#include <pipe/schedule/action.hpp>

namespace pp {

namespace detail {

/// The change of a rank's memory by the actions of a chunk, per micro-batch, in any unit. A
/// positive change takes effect at the start of the action, a negative one at its end.
struct memory_change {
  long forward = 1;
  long backward_input = 0;
  long backward_weight = -1;
  long recompute = 0;  ///< what R brings back; the end of W or BW frees this, too

  /// The change by an action of this kind: BW changes by what B and W do.
  constexpr long of(action_kind kind) const {
    return kind == action_kind::forward ? forward
           : kind == action_kind::recompute
               ? recompute
               : (makes_input_gradient(kind) ? backward_input : 0) +
                     (makes_weight_gradient(kind) ? backward_weight : 0);
  }
  /// The maximum that an action adds while it runs: BW is B and then W.
  constexpr long at_most(action_kind kind) const {
    long const first = kind == action_kind::backward ? backward_input : of(kind), all = of(kind);
    long const most = first > all ? first : all;
    return most > 0 ? most : 0;
  }
};

/// One memory limit for all ranks.
struct same_room {
  static constexpr int size() { return 0; }
  constexpr long operator[](int) const { return 0; }
};

}  // namespace detail

namespace schedules {

/// The costs of one chunk per micro-batch. needs: times >= 0
struct chunk_cost {
  long forward = 1;
  long backward_input = 1;
  long backward_weight = 1;
  detail::memory_change memory{};
  /// Bytes of the value that is sent to the next chunk, and of the gradient that comes back.
  long bytes = 0;
  /// The part of F that the backward of a pair hides: the pair takes F + B (or BW) less this part,
  /// and at least as long as either of the two.
  long hidden = 0;
  /// The time of R, where less than all of F runs again; negative: the time of F.
  long recompute = -1;
  /// Of the link to the next chunk's rank, both ways, where links differ; negative: the problem's.
  long hop = -1, bandwidth = -1;
};

/// Equal costs for all chunks, whatever their number.
struct same_cost {
  chunk_cost each{};
  constexpr chunk_cost const& operator[](std::size_t) const { return each; }
};

/// Ranks, chunks, micro-batches and costs. `Costs` is any type indexed by chunk:
/// `schedules::same_cost`, `static_vector<chunk_cost, N>`, `std::vector<chunk_cost>`. `Rooms`:
/// memory limits indexed by rank, with a size.
template <class Costs = same_cost, class Rooms = detail::same_room>
struct problem {
  int ranks = 1;
  int chunks = 1;
  int micro_batches = 1;
  /// Time from the end of an action until another rank can use its result.
  long hop = 0;
  Costs costs{};
  long bandwidth = 0;  ///< bytes per unit of time on a link, in addition to `hop`; 0: unlimited
  long limit = 0;      ///< memory limit of a rank, in the unit of memory_change; 0: unlimited
  /// Memory limits by rank; `limit` for ranks that have none here, or 0.
  Rooms rooms{};

  /// The memory limit of a rank; 0: unlimited.
  constexpr long room(int rank) const {
    using size_type = decltype(rooms.size());
    long const own = size_type(rank) < rooms.size() ? long(rooms[size_type(rank)]) : 0;
    return own > 0 ? own : limit;
  }
  constexpr chunk_cost const& cost(int chunk) const {
    return costs[static_cast<std::size_t>(chunk)];
  }

  /// Time from the end of an action on one rank until its result can be used on another rank. The
  /// result is the value that crosses the boundary after chunk `boundary`, or the gradient of that
  /// value.
  constexpr long hop_time(int from_rank, int to_rank, int boundary) const {
    if (from_rank == to_rank) return 0;
    long const own = cost(boundary).hop;
    return (own < 0 ? hop : own) + transfer_time(boundary);
  }
  /// The time of a transfer across the boundary after chunk `boundary`, either way: bytes over
  /// bandwidth, rounded up.
  constexpr long transfer_time(int boundary) const {
    chunk_cost const& c = cost(boundary);
    long const rate = c.bandwidth < 0 ? bandwidth : c.bandwidth;
    return rate == 0 ? 0 : (c.bytes + rate - 1) / rate;
  }

  /// The duration of an action. An update has none here: every schedule pays for one update,
  /// outside.
  constexpr long time(action const& a) const {
    using enum action_kind;
    chunk_cost const& c = cost(a.chunk);
    return a.kind == forward           ? c.forward
           : a.kind == backward        ? c.backward_input + c.backward_weight
           : a.kind == backward_input  ? c.backward_input
           : a.kind == backward_weight ? c.backward_weight
           : a.kind == recompute       ? (c.recompute < 0 ? c.forward : c.recompute)
                                       : 0;
  }
  /// The duration of a forward and a backward that run together.
  constexpr long time_of_pair(action const& forward, action const& backward) const {
    long const f = time(forward), b = time(backward), longer = f > b ? f : b,
               both = f + b - cost(forward.chunk).hidden;
    return both > longer ? both : longer;
  }
};

/// The interface of a problem that the algorithms of this folder use.
template <class P>
concept pipeline_problem = requires(P const& p, int i, action a) {
  { p.ranks + p.chunks + p.micro_batches } -> std::convertible_to<int>;
  { p.cost(i) } -> std::convertible_to<chunk_cost>;
  { p.hop_time(i, i, i) } -> std::same_as<long>;
  { p.time(a) } -> std::same_as<long>;
  { p.time_of_pair(a, a) } -> std::same_as<long>;
  { p.limit } -> std::convertible_to<long>;
};

}  // namespace schedules

namespace detail {

/// The memory limit of a rank; 0: unlimited. It is room(rank) of a problem that has it, otherwise
/// the problem's `limit`.
template <pipeline_problem Problem>
constexpr long memory_limit(Problem const& problem, int rank) {
  if constexpr (requires { problem.room(rank); })
    return problem.room(rank);
  else
    return problem.limit;
}

/// hop_time of a micro-batch, for a problem in which transfers depend on it.
template <pipeline_problem Problem>
constexpr long hop_time_of(Problem const& problem, int from_rank, int to_rank, int boundary,
                           int micro_batch) {
  if constexpr (requires { problem.hop_time(from_rank, to_rank, boundary, micro_batch); })
    return problem.hop_time(from_rank, to_rank, boundary, micro_batch);
  else
    return problem.hop_time(from_rank, to_rank, boundary);
}
/// Whether the actions of a chunk take several times, by micro-batch: what is known of the times of
/// chunks, such as floors, does not hold for such a problem.
template <class Problem>
inline constexpr bool is_uneven = requires(Problem const& p) { p.load(0); };

}  // namespace detail

namespace schedules {

/// A problem of `ranks * chunks_per_rank` chunks of equal cost.
constexpr problem<> equal_times(int ranks, int micro_batches, chunk_cost each = {}, long hop = 0,
                                int chunks_per_rank = 1) {
  return problem<>{ranks, ranks * chunks_per_rank, micro_batches, hop, same_cost{each}};
}

/// A problem with a cost for every chunk, chunk 0 first.
template <std::size_t Chunks>
constexpr auto unequal_times(int ranks, int micro_batches, chunk_cost const (&each)[Chunks],
                             long hop = 0) {
  auto costs = detail::static_vector<chunk_cost, Chunks>{};
  for (chunk_cost const& cost : each) costs.push_back(cost);
  return problem<detail::static_vector<chunk_cost, Chunks>>{ranks, static_cast<int>(Chunks),
                                                            micro_batches, hop, costs};
}

}  // namespace schedules

}  // namespace pp
