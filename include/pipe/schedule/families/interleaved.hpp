// SPDX-License-Identifier: BSL-1.0
//
// Schedules for ranks with several chunks, one chunk in every round through the ranks
// (placement::loop): a chunk is V times shorter than a stage, and so the pipeline fills V times
// faster.
#pragma once

#include <pipe/schedule/policy.hpp>

namespace pp {

namespace detail {

/// The order of a rank's forwards (or backwards): groups of micro-batches, each through the rank's
/// chunks in turn.
///
/// law: of(n) for n = 0, 1 .. visits every chunk and micro-batch once, and some micro-batches
///      beyond the last, which the caller skips
struct grouped_order {
  int ranks, chunks_per_rank, group;

  struct visit {
    int chunk, micro_batch;
  };
  constexpr visit of(int n, int rank, bool is_forward) const {
    int const round = n % (group * chunks_per_rank) / group;
    int const local = is_forward ? round : chunks_per_rank - 1 - round;
    return visit{local * ranks + rank, n / (group * chunks_per_rank) * group + n % group};
  }
};

/// Each rank runs `warm_up(rank)` forwards, then forward and backward in turn, then the remaining
/// backwards. Micro-batches beyond the last are ordered like all others and then skipped, so the
/// order of those that exist stays valid. Splits: a backward is B, and its W follows `rank` Bs
/// later.
template <bool Splits = false, pipeline_problem Problem, action_table Table, class WarmUp>
constexpr void fill_grouped(Problem const& problem, Table& table, int group, WarmUp warm_up) {
  using enum action_kind;
  int const p = problem.ranks, v = problem.chunks / p, m = problem.micro_batches;
  grouped_order const order{p, v, group};
  int const total = (m + group - 1) / group * group * v;
  for (int rank = 0; rank < p; ++rank) {
    int next = 0;
    auto const run = [&](int n, action_kind kind) {
      auto const [chunk, mb] = order.of(n, rank, kind == forward);
      if (mb < m) table.push(rank, {kind, chunk, mb});
    };
    while (next < total && next < warm_up(rank)) run(next++, forward);
    for (int n = 0; n < total; ++n) {
      if (next < total) run(next++, forward);
      run(n, Splits ? backward_input : backward);
      if (Splits && n >= rank) run(n - rank, backward_weight);
    }
    if (Splits)
      for (int n = total > rank ? total - rank : 0; n < total; ++n) run(n, backward_weight);
  }
}

}  // namespace detail

/// Interleaved 1F1B.
///
/// V: chunks per rank. Group: the number of micro-batches that pass a chunk before the rank turns
/// to its next chunk; 0 for P.
///
/// law:    equal times without hops, M a multiple of P: the bubble of every rank is (P-1)T/V, T the
///         time of all its chunks; the peak of rank 0 is P(V-1) + 2P-1 chunks
/// needs:  Group is 0 or at least P
/// source: Narayanan et al., Efficient Large-Scale Language Model Training on GPU Clusters
///         (Megatron-LM), 2021
///
/// P = 4, M = 4, two chunks per rank, equal times; 0 1 2: F of a micro-batch, aa bb cc: its
/// backward:
///   rank 0  01230123......aa.bb.cc.ddaabbccdd
///   rank 1  .01230123...aa.bb.cc.ddaabbccdd..
///   rank 2  ..0123012.aa3bb.cc.ddaabbccdd....
///   rank 3  ...01230aa1bb2cc3ddaabbccdd......
template <int V, int Group = 0>
struct Interleaved {
  static constexpr char const* name = "interleaved";
  static constexpr schedules::placement where = schedules::placement::loop;
  static constexpr int chunks_per_rank = V;
  static constexpr bool splits_backward = false;
  static constexpr bool trains = true;

  template <schedules::pipeline_problem Problem, detail::action_table Table>
  static constexpr void fill(Problem const& problem, Table& table) {
    int const p = problem.ranks, v = problem.chunks / p, group = Group > 0 ? Group : p;
    detail::fill_grouped(problem, table, group,
                         [=](int rank) { return 2 * (p - 1 - rank) + (v - 1) * group; });
  }
};

/// Interleaved with half the warm-up: rank r runs P-1-r fewer forwards ahead. The peak of rank 0 is
/// P V chunks instead of P(V-1) + 2P-1.
///
/// law:    equal times without hops, M a multiple of P: the bubble of every rank is (P-1)T/V; the
///         peak of rank 0 is P V chunks
/// source: Wan et al., PipeOffload, 2025 (the grouped interleaved order)
template <int V>
struct GroupedInterleaved {
  static constexpr char const* name = "grouped-interleaved";
  static constexpr schedules::placement where = schedules::placement::loop;
  static constexpr int chunks_per_rank = V;
  static constexpr bool splits_backward = false;
  static constexpr bool trains = true;

  template <schedules::pipeline_problem Problem, detail::action_table Table>
  static constexpr void fill(Problem const& problem, Table& table) {
    int const p = problem.ranks, v = problem.chunks / p;
    detail::fill_grouped(problem, table, p, [=](int rank) { return (v - 1) * p + p - 1 - rank; });
  }
};

/// Interleaved with B and W apart, in the memory of GroupedInterleaved: rank r runs its Ws r Bs
/// later, in the time for which later ranks would wait.
///
/// V, Group: as Interleaved's
///
/// law:    equal times TF = TB = TW of a rank without hops, M a multiple of P: the bubble of every
///         rank is (P-1)(TF+TB-TW)/V; the peak of every rank is P V chunks, for a group G of more
///         than P micro-batches G(V-1) + P
/// needs:  Group is 0 or at least P
/// source: PyTorch, ScheduleInterleavedZeroBubble, which is the order of ZB-H1 (Qi et al., Zero
///         Bubble Pipeline Parallelism, 2024) on several chunks; its groups have M / (M div P)
///         micro-batches
///
/// P = 4, M = 4, two chunks per rank, equal times; 0 1 2: F of a micro-batch, a b c: B, A B C: W
template <int V, int Group = 0>
struct InterleavedZeroBubble {
  static constexpr char const* name = "interleaved-zb";
  static constexpr schedules::placement where = schedules::placement::loop;
  static constexpr int chunks_per_rank = V;
  static constexpr bool splits_backward = true;
  static constexpr bool trains = true;

  template <schedules::pipeline_problem Problem, detail::action_table Table>
  static constexpr void fill(Problem const& problem, Table& table) {
    int const p = problem.ranks, v = problem.chunks / p, group = Group > 0 ? Group : p;
    detail::fill_grouped<true>(problem, table, group,
                               [=](int rank) { return (v - 1) * group + p - 1 - rank; });
  }
};

/// Looped breadth-first pipelining: all micro-batches through the first chunk, then all through the
/// next chunk, and back. This has the bubble of Interleaved and the fewest changes of chunk, and
/// the activations of all micro-batches are alive at once.
///
/// law:    equal times without hops, M >= P: the bubble of every rank is (P-1)T/V; the peak is M V
///         chunks
/// source: Lamy-Poirier, Breadth-First Pipeline Parallelism, 2023
///
/// P = 4, M = 4, two chunks per rank, equal times; 0 1 2: F of a micro-batch, aa bb cc: its
/// backward:
///   rank 0  01230123.........aabbccddaabbccdd
///   rank 1  .01230123......aabbccddaabbccdd..
///   rank 2  ..01230123...aabbccddaabbccdd....
///   rank 3  ...01230123aabbccddaabbccdd......
template <int V>
struct LoopedBFS {
  static constexpr char const* name = "looped-bfs";
  static constexpr schedules::placement where = schedules::placement::loop;
  static constexpr int chunks_per_rank = V;
  static constexpr bool splits_backward = false;
  static constexpr bool trains = true;

  template <schedules::pipeline_problem Problem, detail::action_table Table>
  static constexpr void fill(Problem const& problem, Table& table) {
    int const p = problem.ranks, v = problem.chunks / p;
    for (int rank = 0; rank < p; ++rank) {
      for (int i = 0; i < v; ++i)
        for (int mb = 0; mb < problem.micro_batches; ++mb)
          table.push(rank, {schedules::action_kind::forward, i * p + rank, mb});
      for (int i = v - 1; i >= 0; --i)
        for (int mb = 0; mb < problem.micro_batches; ++mb)
          table.push(rank, {schedules::action_kind::backward, i * p + rank, mb});
    }
  }
};

}  // namespace pp
