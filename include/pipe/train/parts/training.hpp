// SPDX-License-Identifier: BSL-1.0
//
// A trainer's steps over a range of mini-batches.
#pragma once

#include <span>  // std::begin
#include <type_traits>
#include <utility>

#include <pipe/base/error.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/optim/learning_rate.hpp>
#include <pipe/runtime/job.hpp>
#include <pipe/schedule/policy.hpp>
#include <pipe/train/parts/accumulated_batches.hpp>
#include <pipe/train/parts/batch.hpp>
#include <pipe/train/parts/find_nonfinite.hpp>
#include <pipe/train/parts/replica_check.hpp>
#include <pipe/train/parts/setting_checks.hpp>

namespace pp::detail {

/// Calls see(result), which returns whether to go on, or nothing.
template <class See>
bool go_on_after(See& see, step_result const& r) {
  if constexpr (std::is_void_v<std::invoke_result_t<See&, step_result const&>>)
    return see(r), true;
  else
    return bool(see(r));
}

/// Training of Trainer on ranges.
template <class Trainer>
struct training_of {
  using compiled = typename Trainer::compiled;

  /// A step in two halves, gradients and an update by other gradients: see
  /// loose/delayed_replica.hpp.
  struct halves;

  /// The work of with_training::train.
  template <class Batches, class See>
  static long run(Trainer& trainer, Batches&& all, See& see) {
    if constexpr (compiled::overlap == step_overlap::none)
      return run_each(trainer, all, see);
    else
      return run_overlapping(trainer, all, see);
  }

  /// The work of with_training::flush.
  static void flush(Trainer& trainer) {
    auto const access = trainer.engine_.enter();
    if constexpr (compiled::overlap != step_overlap::none) trainer.engine_->forget_versions();
  }

 private:
  template <class Batches, class See>
  static long run_each(Trainer& trainer, Batches& all, See& see) {
    long steps = 0;
    for (auto const& batch : all) {
      step_result const r = trainer.step(batch);
      steps += !r.skipped;
      if (!go_on_after(see, r)) break;
    }
    return steps;
  }
  template <class Batches, class See>
  static long run_overlapping(Trainer& trainer, Batches& all, See& see) {
    auto const access = trainer.engine_.enter();
    trainer.averages_.require_out(trainer.steps_ + 1);
    auto const& settings = trainer.settings_;
    if (compiled::is_free && settings.clip_norm > 0)
      throw_error<data_error>({"clip_norm: expected 0 with ", compiled::schedule::name,
                               ", whose stages update before the norm of all is known, got ",
                               settings.clip_norm, ": use clip_value"});
    require_accumulations(trainer);
    long const before = trainer.steps_;
    long given = 0;
    auto at = std::begin(all);
    auto const end = std::end(all);
    auto const next = [&](job& j) {
      if (given > 0) ++at;
      if (at == end) return false;
      j = trainer.prepare_gradients("train", *at);
      require_terms(j.loss.has_terms());
      long const step = before + ++given;
      begin_step(j, settings, step, learning_rate_of(settings, step));
      return true;
    };
    bool has_thrown = false;
    auto const done = [&](step_result const& r) {
      ++trainer.steps_;
      if (std::exchange(has_thrown, true)) return false;
      bool const goes_on = go_on_after(see, r);
      has_thrown = false;
      return goes_on;
    };
    auto flow = trainer.engine_->flow(trainer.runs_.own());
    flow.run(before, next, done);
    if (job const* const bad = flow.rejected()) reject(trainer, *bad);
    if (long const every = settings.compare_replicas;
        every > 0 && trainer.steps_ / every > before / every)
      compare_replicas<compiled>(trainer.parameter_places(), trainer.steps_);
    return trainer.steps_ - before;
  }
  /// throws: error if there are replicas that do not overlap their steps
  static void require_accumulations(Trainer const& trainer) {
    [[maybe_unused]] int const replicas = trainer.runs_.replicas;
    if constexpr (compiled::zero::level > 0)
      if (replicas > 1)
        throw_error<error>({"train(): steps of ", replicas, " replicas do not overlap with ZeRO<",
                            compiled::zero::level, ">: leave it out, or take ",
                            compiled::schedule::name});
    if constexpr (compiled::is_free && compiled::sum::accumulations > 1)
      if (replicas > 1)
        throw_error<error>(
            {"train(): with ", compiled::schedule::name, " and GradientAccumulation<",
             compiled::sum::accumulations, "> the weights that a micro-batch reads would ",
             "depend on the number of replicas, which is ", replicas,
             ": leave GradientAccumulation out, so that each replica is an accumulation"});
  }
  /// Throws not_finite for a step whose numbers are not finite.
  [[noreturn]] static void reject(Trainer& trainer, job const& bad) {
    using model = typename Trainer::model;
    using element = typename Trainer::element;
    if constexpr (compiled::is_free)
      throw_error<not_finite>({"step ", bad.step,
                               " rejected: its loss or a gradient is not finite; "
                               "what other stages had updated is not taken back, so this trainer "
                               "is broken: load a checkpoint in another one"});
    job again = bad;
    again.update.applies = false;
    if (again.batch.segments == nullptr) again.batch.place = data_place::host;
    reject_step<model, element>({bad.step, ""}, again, trainer.runs_.here(again),
                                Trainer::labels_per_sample, compiled::ranks,
                                trainer.parameter_places(), [&] { trainer.run(again); });
  }
};

struct see_nothing {
  void operator()(step_result const&) const {}
};

/// A trainer that trains on ranges of mini-batches.
template <class Trainer>
struct with_training {
  /// One training step on each mini-batch of a range, at its learning rate; see(result) after each,
  /// which may return false to end. Returns the number of steps. With Steady, steps overlap: a few
  /// mini-batches are taken, and copied, before the results of earlier ones are seen, and are
  /// trained on all the same if `see` ends the training. Over processes `see` returns the same in
  /// all.
  ///
  /// law:    the bits are those of a call of step() for each mini-batch
  /// throws: as step(), after the steps before the one that failed; what the range and `see` throw
  template <class Batches, class See = see_nothing>
  long train(Batches&& all, See see = {}) {
    return training_of<Trainer>::run(static_cast<Trainer&>(*this), all, see);
  }
  /// Without a flush: makes all versions of the weights the newest, as step() does, so that the
  /// next call of train() reads no older version. With a flush all versions are the newest anyway.
  /// Over processes all call flush().
  ///
  /// law: train() then goes on as in a new trainer with these weights and this optimizer state
  void flush() { training_of<Trainer>::flush(static_cast<Trainer&>(*this)); }
};

}  // namespace pp::detail
