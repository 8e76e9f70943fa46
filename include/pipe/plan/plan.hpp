// SPDX-License-Identifier: BSL-1.0
//
// The plan of a pipeline: all decisions of the compiler as one value, to print, to assert on and to
// compare with measurements.
#pragma once

#include <pipe/base/checked_index.hpp>
#include <pipe/base/error.hpp>
#include <pipe/base/list.hpp>
#include <pipe/base/shape.hpp>
#include <pipe/base/view.hpp>
#include <pipe/plan/model_states.hpp>
#include <pipe/runtime/shards.hpp>
#include <pipe/schedule/step_period.hpp>

namespace pp {

/// The plan of one stage.
///
/// units: FLOPs of one micro-batch; memory in bytes
/// law:   the fields of memory add up to `bytes`
struct stage_plan {
  int rank = 0;                        ///< the first that runs it, which owns its weights
  int ranks = 1;                       ///< that run it: see StageReplicas
  int apart = 1;                       ///< from each of them to the next
  int first_layer = 0, end_layer = 0;  ///< layers [first, end) of the opened list
  sample_shape in{}, out{};            ///< shapes of one sample
  long parameters = 0;                 ///< elements of all parameters
  long trained = 0;                    ///< elements of trained parameters
  long buffers = 0;                    ///< elements of buffers, except constant tables
  long forward_flops = 0, backward_flops = 0;
  long recompute_flops = 0;  ///< recomputation before backward
  double share = 0;          ///< fraction of the model's time: estimated, or measured (ByProfile)
  int in_flight = 0;         ///< most micro-batches between forward and backward at once
  int forward_kernels = 0, backward_kernels = 0;

  long parameter_bytes = 0;  ///< parameters, and their 16-bit copies if there are any
  long gradient_bytes = 0, transposed_bytes = 0;
  long optimizer_bytes = 0;  ///< optimizer state, of all replicas, and averages of parameters
  long saved_bytes = 0;      ///< values saved for backward, for all micro-batches in flight
  long boundary_bytes = 0;   ///< slots for values sent to and received from neighbours
  long buffer_bytes = 0;     ///< buffers, and their sums over a mini-batch
  long version_bytes = 0;    ///< where steps overlap: see memory_use::weight_versions
  int versions = 1;          ///< of its weights
  long bytes = 0;            ///< on its first rank; the others have `saved` and `boundary`, and
  long copied_bytes = 0;     ///< copies of all but the state, if ranks do not share memory; or 0
  long host_bytes = 0;       ///< not in them: optimizer state in the host's memory (OffloadState)

  /// Whether a rank runs the stage: the first, or another.
  constexpr bool is_on(int r) const {
    for (int n = 0; n < ranks; ++n)
      if (rank + n * apart == r) return true;
    return false;
  }
  /// Its bytes on a rank: all of them on the first, those of micro-batches on the others.
  constexpr long bytes_on(int r) const {
    return r == rank ? bytes : is_on(r) ? saved_bytes + boundary_bytes + copied_bytes : 0;
  }
};

/// The traffic from one rank to another, one way. It is the same whether the ranks are in one
/// process, which moves no bytes for it, or in two.
///
/// units: bytes
struct link_plan {
  int from = 0, to = 0;
  int first = 0, every = 1;        ///< it is used by micro-batches first, first + every, ...
  long values = 0, gradients = 0;  ///< of a micro-batch: outputs of stages, gradients of outputs
  /// Of a step: parameters of several stages, of which gradients go to the first and values back,
  /// and copies of a stage's weights for its other ranks.
  long shared = 0;
  /// Of all micro-batches of an accumulation: gradients, and sums of buffers, to which the ranks of
  /// a stage add in turn, and losses.
  long sums = 0;
  /// The bandwidth that hides the transfers: a micro-batch's take no longer than the slowest rank
  /// computes for it. (values + gradients + a stage's sums) / max over ranks of (F + B + W of its
  /// stages), in bytes per unit of the plan's time: per nanosecond with ByProfile (1 is 1 GB/s),
  /// else per FLOP (at 1 TFLOP/s, 0.001 is 1 GB/s). A schedule that waits for each value needs more
  /// to be as fast as planned: simulate it with problem::bandwidth.
  double bandwidth = 0;

  /// Of a micro-batch.
  constexpr long bytes() const { return values + gradients; }
};

/// Uses of a rank's memory.
enum class memory_use : unsigned char {
  parameters,
  gradients,
  optimizer_state,
  transposed_weights,
  saved_activations,
  boundary_slots,
  buffers,
  weight_versions,  ///< all but one, and the optimizer's state before an update: see Steady
  gradient_sums,  ///< partial sums over the accumulations of a mini-batch: see GradientAccumulation
  input_staging,  ///< on the host the partly filled micro-batch, on a device the mini-batch
  bookkeeping,    ///< losses, gradient norms, records of executed actions
  scratch         ///< values of a running program, and workspaces of kernels
};

namespace detail {

inline constexpr int memory_uses = 12;
/// One use of a rank's memory and its size.
struct memory_share {
  memory_use what = memory_use::parameters;
  long bytes = 0;
};

/// The plan of a pipeline.
template <int Stages, int Ranks>
struct plan_of {
  list<stage_plan, Stages> stages;
  /// A rank's arena, its only allocation, where one replica trains: see rank_bytes_of.
  list<long, Ranks> rank_bytes;
  /// Page-locked memory of the host for the state of a rank's optimizer: see OffloadState.
  list<long, Ranks> host_bytes;
  /// Parts of rank_bytes: see memory_use.
  list<long, Ranks> staging_bytes, bookkeeping_bytes, gradient_sum_bytes;
  /// The memory map, which lives until the end of the program.
  arena_facts arenas;
  rank_description const* rank_memory = nullptr;
  /// The links that stages use, in the order of the model.
  view<link_plan> links;
  /// Bytes that a rank sends to each of the others at the end of a step: norms, and from the last
  /// stage's rank the loss.
  list<long, Ranks> norm_bytes;
  /// Gradients of a rank that replicas add up, and sums of buffers: see exchange_bytes_of.
  list<long, Ranks> summed_bytes;
  int accumulations = 1;                        ///< of a mini-batch: see GradientAccumulation
  int zero = 0;                                 ///< see ZeRO
  int micro_batches = 0, micro_batch_size = 0;  ///< of an accumulation; samples of a micro-batch
  int threads = 1;                              ///< per rank
  char const* schedule = "";
  char const* optimizer = "";
  char const* precision = "";
  long parameters = 0, trained = 0, buffers = 0;
  long step_flops = 0;   ///< forward and backward of one mini-batch
  int kernels = 0;       ///< distinct kernel groups, each compiled once
  double imbalance = 0;  ///< time of the slowest stage per rank over the mean
  /// The layer that takes as long as the slowest stage, so that no cuts are faster; -1: there is
  /// none, or one stage.
  int limiting_layer = -1;
  double bubble = 0;              ///< idle fraction of the makespan, simulated
  double bubble_stage_local = 0;  ///< idle fraction of the stage-local span, simulated
  /// The largest share of the time of a step that another order of the same stages on the same
  /// ranks could save, if no rank keeps more activations than the fullest does now: 1 - floor /
  /// makespan, or of the period where steps overlap. See schedules::certificate.
  double gap = 0;
  bool proved = false;  ///< no order is faster: gap is 0
  /// Where steps overlap (Steady, and families without a flush): the long-run time of a step in
  /// units of the plan's times, and the idle fraction of it. Else 0.
  step_period period;
  double bubble_steady = 0;
  int peak_in_flight = 0;
  long bytes = 0;  ///< sum over all ranks

  static constexpr int stage_count = Stages, rank_count = Ranks;

  /// Returns the plan, so that `Trainer::plan()` works for a constant and for a function.
  constexpr plan_of const& operator()() const { return *this; }

  /// A rank's arena in replica number `replica` of several, which keeps fewer partial sums, and
  /// with ZeRO a part of the optimizer's state: its own.
  ///
  /// throws: data_error for a rank or a replica out of range
  constexpr long rank_bytes_of(int rank, int replicas, int replica = 0) const {
    checked_index<data_error>("rank", rank, Ranks);
    checked_index<data_error>("replica", replica, replicas);
    return end_of_arena(arenas, rank_memory[rank], rank, replicas, replica).end;
  }
  /// The same of host_bytes.
  constexpr long host_bytes_of(int rank, int replicas, int replica = 0) const {
    checked_index<data_error>("rank", rank, Ranks);
    checked_index<data_error>("replica", replica, replicas);
    if (zero == 0 || host_bytes[rank] == 0) return host_bytes[rank];
    return end_of_arena(arenas, rank_memory[rank], rank, replicas, replica).state_bytes;
  }
  /// The bytes over a link in a step of one replica that runs all accumulations, without
  /// norm_bytes.
  constexpr long step_bytes_of(link_plan const& link) const {
    int const times = (micro_batches - link.first + link.every - 1) / link.every;
    return (link.bytes() * times + link.sums) * accumulations + link.shared;
  }
  /// What rank `rank` of all replicas together sends to the other replicas in a step, if they share
  /// the accumulations evenly: each about 2 (n - 1) / n times summed_bytes, as in a ring, if n
  /// divides the accumulations; else it sends a part for each branch that it runs. With ZeRO a part
  /// of that is parameters, and level 1 between GPUs sends half as much again; level 3 sends them
  /// for each micro-batch: see ZeRO.
  ///
  /// throws: data_error for a rank out of range
  constexpr long exchange_bytes_of(int rank, int replicas) const {
    checked_index<data_error>("rank", rank, Ranks);
    long branches = 0;
    for (int r = 0; r < replicas; ++r)
      branches += branches_of(even_share(accumulations, replicas, r));
    long const loss = stages[Stages - 1].rank == rank ? branches * long(sizeof(double)) : 0,
               parts = summed_bytes[rank] * branches / replicas;
    return (replicas - 1) * (parts + summed_bytes[rank] + loss);
  }
  /// The uses of a rank's memory, the largest first.
  ///
  /// law:    the sum is rank_bytes[rank]
  /// throws: data_error for a rank out of range
  constexpr list<memory_share, memory_uses> memory_of(int rank) const {
    checked_index<data_error>("rank", rank, Ranks);
    list<memory_share, memory_uses> shares;
    for (int k = 0; k < memory_uses; ++k) shares[k].what = memory_use(k);
    long& scratch = shares[int(memory_use::scratch)].bytes;
    shares[int(memory_use::gradient_sums)].bytes = gradient_sum_bytes[rank];
    shares[int(memory_use::input_staging)].bytes = staging_bytes[rank];
    shares[int(memory_use::bookkeeping)].bytes = bookkeeping_bytes[rank];
    scratch =
        rank_bytes[rank] - gradient_sum_bytes[rank] - staging_bytes[rank] - bookkeeping_bytes[rank];
    for (stage_plan const& s : stages) {
      if (!s.is_on(rank)) continue;
      long const owns = s.rank == rank, has = owns || s.copied_bytes > 0;
      // In the order of memory_use. What no stage accounts for is scratch.
      long const of_stage[] = {
          has * s.parameter_bytes,  has * s.gradient_bytes, owns * s.optimizer_bytes,
          has * s.transposed_bytes, s.saved_bytes,          s.boundary_bytes,
          has * s.buffer_bytes,     owns * s.version_bytes};
      for (int k = 0; k < int(memory_use::gradient_sums); ++k) {
        shares[k].bytes += of_stage[k];
        scratch -= of_stage[k];
      }
    }
    // Insertion sort: uses of equal size keep the order of memory_use.
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
