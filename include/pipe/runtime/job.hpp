// SPDX-License-Identifier: BSL-1.0
//
// The interface between a trainer and its engine: a job (one run over a mini-batch), its result,
// and what a watcher sees of each launch on the way.
#pragma once

#include <cstdint>
#include <string_view>

#include <pipe/base/print_report.hpp>
#include <pipe/graph/further_loss.hpp>
#include <pipe/graph/graph.hpp>
#include <pipe/passes/memory.hpp>
#include <pipe/runtime/loss_values.hpp>
#include <pipe/schedule/action.hpp>
#include <pipe/transport/waiting.hpp>

namespace pp {

/// An executed action of a schedule and its times.
///
/// units: nanoseconds from the start of the run; `waited`: duration of the wait before `start`
struct executed_action {
  /// Of steps that overlap, its version counts from the weights before the first step of the call
  /// of train(): a negative one is older; and micro-batches count through the leaves of a step. An
  /// update is of all chunks of the rank.
  action what;
  int step = 0;  ///< of those of a call of train() that overlap, from 0
  long start = 0, end = 0, waited = 0;
};

namespace detail {

/// Of steps that overlap, the last ones whose executed actions are kept.
inline constexpr int recorded_steps = 4;

/// Type-erased access to the operands of a launch, made by the engine that ran it.
///
/// `of`: the engine's record of the launch, passed to both functions. values(of, k): elements of
/// operand k; first_not_finite(of): an operand number, or -1.
struct operand_reader {
  void* of = nullptr;
  void const* (*values)(void* of, int operand) = nullptr;
  int (*first_not_finite)(void* of) = nullptr;
};

}  // namespace detail

/// A kernel launch that has just run, as its watcher receives it. Ranks call the watcher
/// concurrently, each for its own launches. Data is read or downloaded only on request.
struct launch_seen {
  int rank = 0, chunk = 0;
  int micro_batch = 0;  ///< in the mini-batch
  detail::program which = detail::program::forward;
  /// Index in the list of launches of program `which`.
  int launch = 0;
  /// Duration of the launch; on a GPU the time between two events around it.
  long nanoseconds = 0;
  pp::detail::launch const* what = nullptr;
  detail::placed_operand const* operands = nullptr;  ///< [what->count]
  detail::operand_reader reader{};

  /// The elements of operand k: an array of operands[k].elements values of the trainer's element
  /// type, valid during the call. On a GPU they are downloaded.
  void const* values(int k) const { return reader.values(reader.of, k); }
  /// The first operand with a value that is not finite, or -1. A GPU searches in its own memory.
  int first_not_finite() const { return reader.first_not_finite(reader.of); }
  bool all_finite() const { return first_not_finite() < 0; }
};

namespace detail {

/// The place of a mini-batch: the program's arrays in the memory of the host or of the device; or,
/// in that of the engine, as it was prefetched (on the host: copied, and padded to whole
/// micro-batches), or as the run before has read it.
enum class data_place : unsigned char { host, device, loaded, staged };

/// The arrays of a run: of `samples` samples each, valid until the run ends; null: not given.
struct job_batch {
  void const* input[max_inputs]{};
  void const* label = nullptr;
  void* output = nullptr;  ///< infer: the model's output before the loss
  data_place place = data_place::host;
  bool output_is_on_device = false;
  /// If arrays are in a program's device memory: the cudaStream_t behind whose work they are
  /// accessed.
  void* stream = nullptr;
  int samples = 0;               ///< in the mini-batch, at most as planned
  std::uint64_t label_hash = 0;  ///< of what all processes read: see hash_labels
};

/// The terms of a run's losses. None is read in inference.
struct job_loss {
  double terms = 1;           ///< divisor of the loss, positive
  double counted = 1;         ///< sum of the weights of its terms; may be 0, unlike `terms`
  double gradient_terms = 1;  ///< divisor of gradients in backward
  further_losses further{};   ///< those of the model beside the first

  /// Sets the divisors from the sum of the weights of the terms.
  void count(double weights) {
    counted = weights;
    terms = gradient_terms = loss_divisor(weights);
  }
  /// The sum of the weights of the terms of loss i; 1 of a sum.
  constexpr double terms_of(int i) const { return i == 0 ? counted : further.items[i - 1].counted; }
  bool has_terms() const {
    return detail::has_terms(further, [this](int i) { return terms_of(i); });
  }
  /// The value of each loss, of the sums of their terms; 0 of one without terms: see loss_of.
  [[gnu::cold]] loss_values means_of(double const* sums) const {
    loss_values all(sums, 1 + further.count);
    all.items[0] /= terms;
    for (int i = 0; i < further.count; ++i)
      all.items[i + 1] /= loss_divisor(further.items[i].counted);
    return all;
  }
};

struct job;

/// Which part of a step a run is: one of the leaves of its mini-batch, or one of the mini-batches
/// that are accumulated.
struct job_part {
  /// Which leaf this is, of how many here. Only the last one has results. Replicas: how many run
  /// leaves; on the host shares[replicas] says how many each, which lives during the run: see
  /// leaf_division.
  int leaf = 0, leaves = 1, replicas = 1;
  int const* shares = nullptr;
  job const* whole = nullptr;  ///< of a leaf: the job of its mini-batch, while it runs
  int first_micro_batch = 0;   ///< of the leaf, in the mini-batch
  /// Index of the first sample, for random bits: as many as the mini-batches accumulated before
  /// this one, and the leaves before this one, have.
  long first_sample = 0;
  bool continues = false;     ///< train: accumulates onto the gradients of the previous run
  bool is_continued = false;  ///< train: the next run accumulates onto these gradients
};

/// The update at the end of a training run.
struct job_update {
  bool applies = true;  ///< false: the run computes gradients only
  double learning_rate = 0;
  double gradient_scale = 1;  ///< factor of the complete gradients
  /// Every gradient element is clipped to [-clip_value, clip_value]; 0: no clipping.
  double clip_value = 0;
  double clip_norm = 0;  ///< bound of the global norm, after clip_value; 0: no clipping
  long samples = 0;      ///< of all runs that the update counts: the divisor of buffers' sums
};

/// A function that is called after every launch; null: none is.
struct launch_watch {
  void (*see)(void* of, launch_seen const&) = nullptr;
  void* of = nullptr;
};

/// A run over a mini-batch: what to compute, on which data, with which scale factors. Each group of
/// fields is of one phase of the run.
struct job {
  enum class kind : unsigned char { train, evaluate, infer };
  kind what = kind::evaluate;
  long step = 1;           ///< counted from 1
  std::uint64_t seed = 0;  ///< of random bits
  job_batch batch{};       ///< read by inputs, labels and outputs
  job_loss loss{};         ///< read by the loss and its backward
  job_part part{};         ///< read where gradients are summed
  job_update update{};     ///< train: read at the end of the step
  launch_watch watch{};    ///< called in all phases
};

}  // namespace detail

/// Result of a run over a mini-batch. Inference sets only `seconds`; evaluation has no gradient.
struct step_result {
  /// Mean over the mini-batch, before the update; of several losses their weighted sum.
  double loss = 0;
  double gradient_norm = 0;  ///< global, before clipping
  double seconds = 0;
  /// Fraction of the ranks' time spent waiting for each other. On a GPU NaN, unless
  /// executor_settings::timeline is set or the run is watched.
  double bubble = 0;
  double loss_scale = 1;  ///< FP16: factor of the loss in this step
  /// FP16: the scaled gradients overflowed. The step changed no parameter and lowered the factor.
  bool skipped = false;
  loss_values losses{};  ///< each loss, before the update
};

namespace detail {

/// Runs that are reported while they run, because those of the same kind before them (steps,
/// evaluations, inferences) were faster. Only time in which the process ran counts.
struct slow_runs {
  /// Times the median duration of the last 31 runs, or of at least 7; 0: no run is slow.
  double factor = 10;
  std::chrono::milliseconds at_least{10'000};
  /// Called at most once in a run, as executor_settings::on_timeout; null: no run is slow. An
  /// exception from it fails the run.
  void (*report)(std::string_view report) = print_report;
};

/// Settings of an executor: waiting, timeouts, thread placement and timing.
struct executor_settings {
  /// Limits of waits between ranks. The deadline detects a run without progress: if no rank
  /// finishes a kernel or a wait for that long, the run fails with rank_error. It must exceed the
  /// duration of the longest kernel; 0 or less: no deadline.
  patience waiting{};
  /// Called once, on the thread that called the trainer, when a run times out, with a table of each
  /// rank's current activity; null: no call. The trainer's call then throws only after a rank that
  /// is stuck in a kernel has returned, because it uses the caller's memory; a program that cannot
  /// wait for it sets abort_with_report.
  void (*on_timeout)(std::string_view report) = print_report;
  slow_runs slow{};
  /// With SumBySpeed: how fast this process is beside the others, in any unit, for its share of the
  /// leaves; given in all of them, or in none. 0: it is measured.
  double speed = 0;
  /// Binds the threads of ranks to consecutive cores, if there are enough. Only for a program that
  /// has the machine to itself: two programs that bind share the first cores and leave others idle.
  bool pin = false;
  /// On a GPU: records events around every action, for step_result::bubble, executed() and
  /// timelines. Watched runs, and all runs on the host, have these times in any case.
  bool timeline = false;
};

}  // namespace detail

}  // namespace pp
