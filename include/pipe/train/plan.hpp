// SPDX-License-Identifier: BSL-1.0
//
// The plan of a pipeline: everything the compiler decided, as one value to print, to assert on and
// to compare with what was measured.
#pragma once

#include <pipe/base/checked_index.hpp>
#include <pipe/base/error.hpp>
#include <pipe/base/list.hpp>
#include <pipe/base/shape.hpp>

namespace pp {

/// What the plan says of one stage. Amounts of memory are bytes and add up to `bytes`; FLOPs are of
/// one micro-batch.
struct stage_plan {
  int rank = 0;
  int first_layer = 0, end_layer = 0;  ///< layers [first, end) of the opened list
  shape in{}, out{};                   ///< of one sample
  long parameters = 0;                 ///< numbers
  long trained = 0;                    ///< of them
  long buffers = 0;                    ///< numbers besides, but for tables
  long forward_flops = 0, backward_flops = 0;
  long recompute_flops = 0;  ///< made again before backward
  double share = 0;          ///< of the whole model's time: estimated, or measured (ByProfile)
  int in_flight = 0;         ///< most micro-batches between forward and backward at once
  int forward_kernels = 0, backward_kernels = 0;

  long parameter_bytes = 0;  ///< and copies in 16 bits, if kernels read these
  long gradient_bytes = 0, transposed_bytes = 0;
  long optimizer_bytes = 0;  ///< its state, and averages of parameters
  long saved_bytes = 0;      ///< what forward keeps for backward, for all micro-batches in flight
  long boundary_bytes = 0;   ///< slots for values on their way to a neighbour
  long buffer_bytes = 0;     ///< and what is added up for them
  long bytes = 0;
};

/// What takes the memory of a rank.
enum class memory_use : unsigned char {
  parameters,
  gradients,
  optimizer_state,
  transposed_weights,
  saved_activations,
  boundary_slots,
  buffers,
  input_staging,  ///< on the host a micro-batch that is filled up, on a device the mini-batch
  bookkeeping,    ///< losses, norms of gradients, records of executed actions
  scratch         ///< with the kernels' workspace
};

namespace detail {

inline constexpr int memory_uses = 10;
struct memory_share {
  memory_use what = memory_use::parameters;
  long bytes = 0;
};

template <int Stages, int Ranks>
struct plan_of {
  list<stage_plan, Stages> stages;
  list<long, Ranks> rank_bytes;  ///< of a rank's arena, the one allocation that it makes
  /// Of them: of inputs that are not read where the caller has them; of losses, norms and records
  /// of actions.
  list<long, Ranks> staging_bytes, bookkeeping_bytes;
  int micro_batches = 0, micro_batch_size = 0;
  int threads = 1;  ///< of each rank
  char const* schedule = "";
  char const* optimizer = "";
  char const* precision = "";
  long parameters = 0, trained = 0, buffers = 0;
  long step_flops = 0;            ///< of one mini-batch, forward and backward
  int kernels = 0;                ///< distinct kernel groups: what was compiled
  double imbalance = 0;           ///< slowest stage over the mean
  double bubble = 0;              ///< idle share of the makespan, simulated with the same times
  double bubble_stage_local = 0;  ///< the same over the stage-local span
  int peak_in_flight = 0;
  long bytes = 0;  ///< of all ranks

  static constexpr int stage_count = Stages, rank_count = Ranks;

  /// Itself, so that `Trainer::plan()` reads both a plan that is a constant and one that the
  /// program makes.
  constexpr plan_of const& operator()() const { return *this; }

  /// What takes the memory of a rank, the largest first. law: the sum is rank_bytes[rank]. Throws
  /// data_error if there is no such rank.
  constexpr list<memory_share, memory_uses> memory_of(int rank) const {
    checked_index<data_error>("rank", rank, Ranks);
    list<memory_share, memory_uses> shares;
    for (int k = 0; k < memory_uses; ++k) shares[k].what = memory_use(k);
    long& scratch = shares[int(memory_use::scratch)].bytes;
    shares[int(memory_use::input_staging)].bytes = staging_bytes[rank];
    shares[int(memory_use::bookkeeping)].bytes = bookkeeping_bytes[rank];
    scratch = rank_bytes[rank] - staging_bytes[rank] - bookkeeping_bytes[rank];
    for (stage_plan const& s : stages) {
      if (s.rank != rank) continue;
      long const of_stage[] = {s.parameter_bytes,  s.gradient_bytes, s.optimizer_bytes,
                               s.transposed_bytes, s.saved_bytes,    s.boundary_bytes,
                               s.buffer_bytes};
      for (int k = 0; k < int(memory_use::input_staging); ++k) {
        shares[k].bytes += of_stage[k];
        scratch -= of_stage[k];
      }
    }
    for (int i = 1; i < memory_uses; ++i)
      for (int k = i; k > 0 && shares[k].bytes > shares[k - 1].bytes; --k) {
        memory_share const smaller = shares[k - 1];
        shares[k - 1] = shares[k];
        shares[k] = smaller;
      }
    return shares;
  }
};

}  // namespace detail

}  // namespace pp
