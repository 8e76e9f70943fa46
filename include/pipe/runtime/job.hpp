// SPDX-License-Identifier: BSL-1.0
//
// A request to run a pipeline, and its result.
#pragma once

#include <cstdint>
#include <string_view>

#include <pipe/graph/graph.hpp>
#include <pipe/passes/memory.hpp>
#include <pipe/schedule/action.hpp>
#include <pipe/transport/waiting.hpp>

namespace pp {

/// An action that was executed, in nanoseconds from the start of the run; `waited` of them before
/// its start.
struct executed_action {
  action what;
  long start = 0, end = 0, waited = 0;
};

namespace detail {

/// What a launch has left in its operands, for a watcher that asks.
struct operand_reader {
  void* of = nullptr;
  void const* (*values)(void* of, int operand) = nullptr;
  int (*first_not_finite)(void* of) = nullptr;
};

}  // namespace detail

/// A launch that has just run. Ranks call at the same time, each for its own. What is not asked for
/// costs nothing.
struct launch_seen {
  int rank = 0, chunk = 0, micro_batch = 0;
  program which = program::forward;
  int launch = 0;
  long nanoseconds = 0;
  pp::detail::launch const* what = nullptr;
  placed_operand const* operands = nullptr;  ///< what->count of them
  detail::operand_reader reader{};

  /// Numbers of operand k: operands[k].elements of the trainer's element type. Valid during the
  /// call. On a GPU they are downloaded.
  void const* values(int k) const { return reader.values(reader.of, k); }
  /// The first operand with a number that is not finite, or -1. On a GPU numbers are looked at
  /// there.
  int first_not_finite() const { return reader.first_not_finite(reader.of); }
  bool all_finite() const { return first_not_finite() < 0; }
};

namespace detail {

/// One run over a mini-batch.
struct job {
  enum class kind : unsigned char { train, evaluate, infer, stop };
  kind what = kind::evaluate;
  void const* input[max_inputs]{};
  void const* label = nullptr;
  void* output = nullptr;     ///< infer: the model's output before the loss
  int samples = 0;            ///< of the mini-batch: as many as planned, or fewer
  double loss_terms = 1;      ///< the loss is a mean over this number of terms
  double counted = 1;         ///< the same, but 0 where nothing counts
  double gradient_terms = 1;  ///< what gradients are divided by as they are made
  double gradient_scale = 1;  ///< train: and multiplied by when they are complete
  std::uint64_t seed = 0;     ///< of random bits
  long first_sample = 0;      ///< of the mini-batch, for random bits
  bool updates = true;        ///< train: false keeps gradients and leaves parameters alone
  bool continues = false;     ///< train: adds to the gradients of the run before
  bool is_continued = false;  ///< train: and the next run will add to these
  long step = 1;
  double learning_rate = 0;
  double clip_value =
      0;  ///< train: first every element of the gradients to [-this, this]; 0: no clipping
  double clip_norm = 0;  ///< then all of them to this global norm; 0: no clipping
  void (*watch)(void* watcher, launch_seen const&) = nullptr;  ///< called after every launch
  void* watcher = nullptr;
};

}  // namespace detail

/// What a run over a mini-batch came to. An inference has seconds only, an evaluation no gradient.
struct step_result {
  double loss = 0;           ///< mean over the mini-batch, before the update
  double gradient_norm = 0;  ///< global, before clipping
  double seconds = 0;
  double bubble = 0;  ///< share of the ranks' time spent waiting for each other; on a GPU without
                      ///< machine_settings::timeline NaN
  /// FP16: what the loss was multiplied by; gradients that overflowed by it have changed nothing
  /// but the factor, which is now smaller.
  double loss_scale = 1;
  bool skipped = false;
};

namespace detail {

struct machine_settings {
  /// How ranks wait for each other. The deadline is for a run that makes no progress: when no rank
  /// has finished a kernel or a wait for so long, the run fails with a rank_error. It has to be
  /// longer than the longest kernel; 0 or less: none.
  patience waiting{};
  /// Called once, on the thread that called the trainer, when the deadline of a run has passed,
  /// with a table of what each rank is doing. The call returns (throws) only after a rank that is
  /// stuck in a kernel has come back, because that rank works in the caller's memory; a program
  /// that does not want to wait for it ends itself here.
  void (*on_timeout)(std::string_view report) = nullptr;
  /// Binds each rank's thread to a core of its own, from the first one on, if there are enough. It
  /// is for a program that has the machine to itself: two that bind share the first cores while
  /// others idle.
  bool pin = false;
  /// On a GPU: events around every action, for step_result::bubble, executed() and drawings of what
  /// ran. A watched run has them anyway; on the CPU every run has.
  bool timeline = false;
};

}  // namespace detail

}  // namespace pp
