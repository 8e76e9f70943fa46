// SPDX-License-Identifier: BSL-1.0
//
// The interface between a trainer and its engine: a job, which is one run over a mini-batch, the
// result of the run, and what a watcher sees of each launch.
#pragma once

#include <cstdint>
#include <string_view>

#include <pipe/backend/segments.hpp>
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
/// units: nanoseconds from the start of the run; waited: the duration of the wait before `start`
struct executed_action {
  /// Where steps overlap, versions count from the weights before the first step of the call of
  /// train(), and a negative version is older than these; micro-batches count through the
  /// accumulations of a step. An update is of all chunks of the rank.
  schedules::action what;
  int step = 0;  ///< in the call of train(), from 0, where steps overlap
  long start = 0, end = 0, waited = 0;
};

namespace detail {

/// The number of last steps whose executed actions are kept, where steps overlap.
inline constexpr int recorded_steps = 4;

/// Type-erased access to the operands of a launch, made by the engine that ran the launch.
///
/// `of`: the engine's record of the launch, passed to all functions. values(of, k): the elements of
/// operand k; first_not_finite(of): the number of an operand, or -1; written(of, k): see
/// launch_seen, or null if all elements are written.
struct operand_reader {
  void* of = nullptr;
  void const* (*values)(void* of, int operand) = nullptr;
  int (*first_not_finite)(void* of) = nullptr;
  long (*written)(void* of, int operand) = nullptr;
};

}  // namespace detail

/// A kernel launch that has just run, as a watcher receives it. Ranks call the watcher
/// concurrently, each for its own launches. Operands are read or downloaded only on request.
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
  /// The number of the first elements of operand k that the launch has written; with Lengths those
  /// of rows that are there. The elements behind them have no meaning.
  long written(int k) const {
    return reader.written == nullptr ? operands[k].elements : reader.written(reader.of, k);
  }
  /// The first operand with a value that is not finite, or -1. A GPU searches in device memory.
  int first_not_finite() const { return reader.first_not_finite(reader.of); }
  bool all_finite() const { return first_not_finite() < 0; }
};

namespace detail {

/// The place of a mini-batch. host, device: the program's arrays in the memory of the host or of a
/// device. loaded: the engine's memory, prefetched, or on the host copied and padded to whole
/// micro-batches. staged: the engine's memory, where the run before has read the same mini-batch.
enum class data_place : unsigned char { host, device, loaded, staged };

/// The arrays of a run: `samples` samples each, valid until the run ends; null: not given.
struct job_batch {
  void const* input[max_inputs]{};
  void const* label = nullptr;
  /// infer, by loss: the array for what its chain makes; null if the program does not ask for it
  void* output[most_losses]{};
  /// train, by input: the array for the gradient of the input; null if the program does not ask for
  /// it
  void* input_gradient[max_inputs]{};
  data_place place = data_place::host;
  bool output_is_on_device = false;
  /// If arrays are in device memory: the cudaStream_t behind whose work they are accessed.
  void* stream = nullptr;
  int samples = 0;  ///< in the mini-batch, at most as planned
  /// With Lengths, by micro-batch, `axes` lists each: the rows on axis 1, on axis 2 and so on that
  /// are there. All lists of a micro-batch have as many segments, also that of an input that is no
  /// axis. Each micro-batch begins where it would with the longest samples. Else null.
  segment_list const* segments = nullptr;
  int axes = 0;
  std::uint64_t label_hash = 0;   ///< of labels, weights and targets: see hash_labels
  std::uint64_t length_hash = 0;  ///< of `segments`: see hash_rows
};

/// The terms of a run's losses. None is read in inference.
struct job_loss {
  double terms = 1;           ///< divisor of the loss, positive
  double counted = 1;         ///< sum of the weights of its terms; may be 0, unlike `terms`
  double gradient_terms = 1;  ///< divisor of gradients in backward
  further_losses further{};   ///< the losses of the model beside the first

  /// Sets the divisors from the sum of the weights of the terms.
  void count(double weights) {
    counted = weights;
    terms = gradient_terms = loss_divisor(weights);
  }
  /// The sum of the weights of the terms of loss i; 1 if the loss is a sum.
  constexpr double terms_of(int i) const { return i == 0 ? counted : further.items[i - 1].counted; }
  bool has_terms() const {
    return detail::has_terms(further, [this](int i) { return terms_of(i); });
  }
  /// The value of each loss, from the sums of the losses' terms; 0 for a loss without terms: see
  /// loss_of.
  [[gnu::cold]] loss_values means_of(double const* sums) const {
    loss_values all(sums, 1 + further.count);
    all.items[0] /= terms;
    for (int i = 0; i < further.count; ++i)
      all.items[i + 1] /= loss_divisor(further.items[i].counted);
    return all;
  }
};

struct job;

/// The part of a step that a run is: one of the accumulations of a mini-batch, or one of the
/// mini-batches that are accumulated.
struct job_part {
  /// The number of the accumulation among the `accumulations` that this process runs; the last of
  /// them has results. replicas: the number of replicas that run accumulations. shares[replicas]:
  /// on the host, the number of accumulations of each replica, valid during the run: see
  /// accumulation_division.
  int accumulation = 0, accumulations = 1, replicas = 1;
  int const* shares = nullptr;
  job const* whole = nullptr;  ///< of an accumulation: the job of the mini-batch, during the run
  int first_micro_batch = 0;   ///< of the accumulation, in the mini-batch
  /// Index of the first sample, for random bits: the number of samples of mini-batches accumulated
  /// before this run, and of accumulations before this accumulation.
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
  long samples = 0;      ///< of all runs in this update: the divisor of buffers' sums
};

/// A function that is called after every launch; null: no function.
struct launch_watch {
  void (*see)(void* of, launch_seen const&) = nullptr;
  void* of = nullptr;
};

/// A run over a mini-batch: what to compute, on which data, with which scale factors. Each group of
/// fields belongs to one phase of the run.
struct job {
  enum class kind : unsigned char { train, evaluate, infer };
  kind what = kind::evaluate;
  /// train: only gradients of inputs are computed; no kernel runs that adds to the gradient of a
  /// parameter, or to the sum of a buffer.
  bool of_inputs = false;
  long step = 1;           ///< counted from 1
  std::uint64_t seed = 0;  ///< of random bits
  job_batch batch{};       ///< read by inputs, labels and outputs
  job_loss loss{};         ///< read by the loss and its backward
  job_part part{};         ///< read where gradients are summed
  job_update update{};     ///< train: read at the end of the step
  launch_watch watch{};    ///< called in all phases

  /// Whether kernels add to the gradients of parameters and to the sums of buffers.
  bool adds_gradients() const { return what == kind::train && !of_inputs; }
};

}  // namespace detail

/// Result of a run over a mini-batch. Inference sets only `seconds`; evaluation has no gradient.
struct step_result {
  /// Mean over the mini-batch, before the update; for several losses the weighted sum of their
  /// means.
  double loss = 0;
  double gradient_norm = 0;  ///< global, before clipping
  double seconds = 0;
  /// Fraction of the ranks' time that they spent waiting for each other. On a GPU NaN, unless
  /// executor_settings::timeline is set or the run is watched.
  double bubble = 0;
  double loss_scale = 1;  ///< FP16: factor of the loss in this step
  /// FP16: the scaled gradients overflowed. The step changed no parameter and lowered the factor.
  bool skipped = false;
  loss_values losses{};  ///< each loss, before the update
};

namespace detail {

/// The report of a run that takes much longer than earlier runs of its kind (steps, evaluations,
/// inferences), while it runs. Only time in which the process ran counts.
struct slow_runs {
  /// A run is slow after `factor` times the median duration of the last 31 runs, or of at least 7
  /// runs; 0: no run is slow.
  double factor = 10;
  std::chrono::milliseconds at_least{10'000};
  /// Called at most once in a run, on the same thread as executor_settings::on_timeout; null: no
  /// run is slow. An exception from the call fails the run.
  void (*report)(std::string_view report) = print_report;
};

/// Settings of an executor: waiting, timeouts, thread placement and timing.
struct executor_settings {
  /// Limits of waits between ranks. The deadline detects a run without progress: if no rank
  /// finishes a kernel or a wait for that long, the run fails with rank_error. The deadline must
  /// exceed the duration of the longest kernel; 0 or less: no deadline.
  patience waiting{};
  /// Called once, on the thread that called the trainer, when a run times out, with a table of each
  /// rank's current activity; null: no call. The trainer's call then throws only after a rank that
  /// is stuck in a kernel has returned, because the kernel uses the caller's memory; a program that
  /// cannot wait for the kernel sets abort_with_report.
  void (*on_timeout)(std::string_view report) = print_report;
  slow_runs slow{};
  /// With GradientAccumulationBySpeed: the speed of this process, in any unit that all processes
  /// share, for its share of the accumulations; given in all processes, or in none. 0: the speed is
  /// measured.
  double speed = 0;
  /// Binds the threads of ranks to consecutive cores, if there are enough. Only for a program that
  /// has the machine to itself: two programs that bind their threads share the first cores and
  /// leave other cores idle.
  bool pin = false;
  /// On a GPU: records events around every action, for step_result::bubble, executed() and
  /// timelines. Watched runs, and all runs on the host, record these times in any case.
  bool timeline = false;
};

}  // namespace detail

}  // namespace pp
