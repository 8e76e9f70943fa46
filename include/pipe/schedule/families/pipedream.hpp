// SPDX-License-Identifier: BSL-1.0
//
// PipeDream and its relatives: a micro-batch in flight during an update goes on with the weights of
// before, or with newer weights. In a table, the micro-batches of the problem are those of a whole
// run of several mini-batches, and MiniBatch says how many of them make an update. In a Pipeline
// MicroBatches, of all accumulations of GradientAccumulation, make an update, and the run goes on
// as long as there are mini-batches: see Pipeline::train.
#pragma once

#include <pipe/schedule/families/one_f_one_b.hpp>
#include <pipe/schedule/families/unflushed.hpp>

namespace pp {

/// PipeDream: F reads the newest weights, and its backward reads the same version, which is kept
/// until then (weight stashing). With VerticalSync all ranks read the version that rank 0 has read.
///
/// MiniBatch: of tables; micro-batches from one update to the next.
///
/// law:    rank i keeps 1 + ceil((P-1-i) / MiniBatch) versions of its weights (with vertical sync,
///         1 + ceil((P-1) / MiniBatch)), and the activations of P-i micro-batches
/// source: Narayanan et al., PipeDream, 2019, section 3.3
template <bool VerticalSync = false, int MiniBatch = 1>
struct PipeDream : detail::unflushed<PipeDream<VerticalSync, MiniBatch>> {
  static constexpr char const* name = "pipedream";

  static constexpr int version(detail::version_question const& q) {
    int const behind = VerticalSync ? q.ranks - 1 : q.ahead;
    return detail::floor_divided(q.micro_batch - behind, q.mini_batch);
  }
  static constexpr int drift(int, int) { return 0; }

  template <schedules::pipeline_problem Problem, detail::action_table Table>
  static constexpr void fill(Problem const& problem, Table& table) {
    PipeDream::fill_run(problem, table, MiniBatch);
  }
};

/// PipeDream-2BW: gradients are accumulated over a mini-batch of several micro-batches. With two
/// versions of the weights, each mini-batch reads the version before the newest:
/// W(t+1) = W(t) - rate * gradient(W(t-1)).
///
/// MiniBatch: of tables; micro-batches from one update to the next, 0 for P.
///
/// law:    every rank keeps two versions of its weights; rank i keeps the activations of P-i
///         micro-batches
/// needs:  a mini-batch of at least P-1 micro-batches
/// source: Narayanan et al., Memory-Efficient Pipeline-Parallel DNN Training (PipeDream-2BW), 2021
template <int MiniBatch = 0>
struct PipeDream2BW : detail::unflushed<PipeDream2BW<MiniBatch>> {
  static constexpr char const* name = "pipedream-2bw";

  static constexpr int version(detail::version_question const& q) {
    return detail::floor_divided(q.micro_batch, q.mini_batch) - 1;
  }
  static constexpr int drift(int, int) { return 0; }

  static constexpr char const* refuses_mini_batch(int ranks, int mini_batch) {
    return mini_batch < ranks - 1
               ? "needs a mini-batch of about as many micro-batches as there are ranks"
               : nullptr;
  }
  static constexpr char const* refuses(int ranks, int) {
    return MiniBatch > 0 ? refuses_mini_batch(ranks, MiniBatch) : nullptr;
  }
  template <schedules::pipeline_problem Problem, detail::action_table Table>
  static constexpr void fill(Problem const& problem, Table& table) {
    PipeDream2BW::fill_run(problem, table, MiniBatch > 0 ? MiniBatch : problem.ranks);
  }
};

/// PACI: one copy of the weights. F and backward read the newest weights, so backward may read a
/// newer version than its forward did: at most ceil((P-1) / MiniBatch) updates newer. The gradient
/// is that of the saved activations with the current weights. With Predicts, a forward reads the
/// weights that its backward will have, as the last update predicts them: w + n (w - w'). Here n is
/// the number of updates in between, and w' are the weights before the last update. The prediction
/// takes the slot of w', and serves every optimizer; papers have a formula for each. Only PACI
/// predicts: where weights are stashed, backward would have to read the prediction again.
///
/// MiniBatch: of tables; micro-batches from one update to the next, 0 for P.
///
/// law:    one version of the weights, with Predicts a predicted version too on all ranks but the
///         last; rank i keeps the activations of P-i micro-batches
/// source: PACI, arXiv 2606.07881; prediction in forward only, by the optimizer's own rule:
///         PipeOptim, arXiv 2312.00839
template <int MiniBatch = 0, bool Predicts = false>
struct PACI : detail::unflushed<PACI<MiniBatch, Predicts>> {
  static constexpr char const* name = Predicts ? "paci-predicted" : "paci";
  static constexpr bool predicts = Predicts;

  static constexpr int version(detail::version_question const& q) {
    int const behind = q.kind == schedules::action_kind::forward ? q.ahead : 0;
    return detail::floor_divided(q.micro_batch - behind, q.mini_batch);
  }
  /// The most updates between a forward and its backward.
  static constexpr int drift(int ranks, int mini_batch) {
    return (ranks - 1 + mini_batch - 1) / mini_batch;
  }

  template <schedules::pipeline_problem Problem, detail::action_table Table>
  static constexpr void fill(Problem const& problem, Table& table) {
    PACI::fill_run(problem, table, MiniBatch > 0 ? MiniBatch : problem.ranks);
  }
};

}  // namespace pp
