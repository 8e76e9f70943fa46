// SPDX-License-Identifier: BSL-1.0
//
// The plan of a pipeline: everything the compiler decided, as one value to print, to assert on and to compare with what was
// measured. All of it is known before the program runs.
#pragma once

#include <pipe/base/list.hpp>
#include <pipe/base/shape.hpp>

namespace pp {

/// One stage. Amounts of memory are bytes and add up to `bytes`; FLOPs are of one micro-batch.
struct stage_plan {
  int rank = 0;
  int first_layer = 0, end_layer = 0;  ///< layers [first, end) of the opened list
  shape in{}, out{};                   ///< of one sample
  long parameters = 0;                 ///< numbers
  long trained = 0;                    ///< of them
  long forward_flops = 0, backward_flops = 0;
  long recompute_flops = 0;  ///< made again before backward
  double share = 0;          ///< of the whole model's time: estimated, or measured (ByProfile)
  int in_flight = 0;         ///< most micro-batches between forward and backward at once
  int forward_kernels = 0, backward_kernels = 0;

  long parameter_bytes = 0, gradient_bytes = 0, transposed_bytes = 0;
  long optimizer_bytes = 0;  ///< its state, and averages of parameters
  long saved_bytes = 0;      ///< what forward keeps for backward, for all micro-batches in flight
  long boundary_bytes = 0;   ///< slots for values on their way to a neighbour
  long bytes = 0;
};

template <int Stages, int Ranks>
struct plan_of {
  list<stage_plan, Stages> stages;
  list<long, Ranks> rank_bytes;  ///< with scratch and workspace: exactly what is allocated
  int micro_batches = 0, micro_batch_size = 0;
  int threads = 1;  ///< of each rank
  char const* schedule = "";
  char const* optimizer = "";
  char const* precision = "";
  long parameters = 0, trained = 0;
  long step_flops = 0;            ///< of one mini-batch, forward and backward
  int kernels = 0;                ///< distinct kernel groups: what was compiled
  double imbalance = 0;           ///< slowest stage over the mean
  double bubble = 0;              ///< idle share of the makespan, simulated with the same times
  double bubble_stage_local = 0;  ///< the same over the stage-local span
  int peak_in_flight = 0;
  long bytes = 0;  ///< of all ranks

  static constexpr int stage_count = Stages, rank_count = Ranks;
};

}  // namespace pp
