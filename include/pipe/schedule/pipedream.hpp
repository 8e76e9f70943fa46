// SPDX-License-Identifier: BSL-1.0
//
// Schedules without a flush: the pipeline stays full from one update to the next, and a micro-batch
// in flight during an update goes on with the weights with which it began. The micro-batches of a
// problem are those of a whole run of several mini-batches.
#pragma once

#include <pipe/schedule/policy.hpp>

namespace pp {

namespace detail {

/// 1F1B with an update after each mini-batch. version(rank, micro_batch) is the version of the
/// weights that F and backward of a micro-batch read.
template <pipeline_problem Problem, action_table Table, class Version>
constexpr void fill_unflushed(Problem const& problem, Table& table, int mini_batch,
                              Version version) {
  using enum action_kind;
  int const p = problem.ranks, m = problem.micro_batches;
  table.mini_batch = mini_batch;
  for (int rank = 0; rank < p; ++rank) {
    int next = 0, updates = 0;
    auto const run_forward = [&] {
      table.push(rank, {forward, rank, next, version(rank, next)});
      ++next;
    };
    while (next < m && next < p - 1 - rank) run_forward();
    for (int mb = 0; mb < m; ++mb) {
      if (next < m) run_forward();
      table.push(rank, {backward, rank, mb, version(rank, mb)});
      if ((mb + 1) % mini_batch == 0) table.push(rank, {update, rank, mb, ++updates});
    }
  }
}

}  // namespace detail

/// PipeDream: every micro-batch is a mini-batch. F reads the newest weights, and its backward reads
/// the same ones, which are kept until then. With VerticalSync all ranks read the version that rank
/// 0 read.
///
/// law:    rank i keeps P-i versions of its weights (with vertical sync, P) and the activations of
///         P-i micro-batches
/// source: Narayanan et al., PipeDream, 2019, section 3.3
template <bool VerticalSync = false>
struct PipeDream {
  static constexpr char const* name = "pipedream";
  static constexpr placement where = placement::straight;
  static constexpr int chunks_per_rank = 1;
  static constexpr bool splits_backward = false;
  static constexpr bool trains = true;
  static constexpr bool updates = true;

  template <pipeline_problem Problem, detail::action_table Table>
  static constexpr void fill(Problem const& problem, Table& table) {
    int const p = problem.ranks;
    detail::fill_unflushed(problem, table, 1, [=](int rank, int mb) {
      int const behind = p - 1 - (VerticalSync ? 0 : rank);
      return mb < behind ? 0 : mb - behind;
    });
  }
};

/// PipeDream-2BW: gradients are accumulated over a mini-batch of several micro-batches. With two
/// versions of the weights, each mini-batch reads the version before the newest:
/// W(t+1) = W(t) - rate * gradient(W(t-1)).
///
/// MiniBatch: micro-batches from one update to the next; 0 for P.
///
/// law:    every rank keeps two versions of its weights; rank i keeps the activations of P-i
///         micro-batches
/// needs:  MiniBatch is at least P-1, or 0
/// source: Narayanan et al., Memory-Efficient Pipeline-Parallel DNN Training (PipeDream-2BW), 2021
template <int MiniBatch = 0>
struct PipeDream2BW {
  static constexpr char const* name = "pipedream-2bw";
  static constexpr placement where = placement::straight;
  static constexpr int chunks_per_rank = 1;
  static constexpr bool splits_backward = false;
  static constexpr bool trains = true;
  static constexpr bool updates = true;

  static constexpr char const* refuses(int ranks, int) {
    return MiniBatch > 0 && MiniBatch < ranks - 1
               ? "needs a mini-batch of about as many micro-batches as there are ranks"
               : nullptr;
  }
  template <pipeline_problem Problem, detail::action_table Table>
  static constexpr void fill(Problem const& problem, Table& table) {
    int const mini_batch = MiniBatch > 0 ? MiniBatch : problem.ranks;
    detail::fill_unflushed(problem, table, mini_batch, [=](int, int mb) {
      int const number = mb / mini_batch;
      return number < 1 ? 0 : number - 1;
    });
  }
};

}  // namespace pp
