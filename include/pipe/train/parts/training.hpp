// SPDX-License-Identifier: BSL-1.0
//
// A trainer's steps over a range of mini-batches.
#pragma once

#include <iterator>
#include <type_traits>
#include <utility>

#include <pipe/runtime/job.hpp>
#include <pipe/schedule/policy.hpp>

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

  /// See with_training::train.
  template <class Batches, class See>
  static long run(Trainer& trainer, Batches&& all, See& see) {
    if constexpr (compiled::work::overlap == step_overlap::none)
      return run_each(trainer, all, see);
    else
      return run_overlapping(trainer, all, see);
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
    long const before = trainer.steps_;
    long given = 0;
    auto at = std::begin(all);
    auto const end = std::end(all);
    auto const next = [&](job& j) {
      if (given > 0) ++at;
      if (at == end) return false;
      j = trainer.prepare_step(*at, before + given + 1);
      ++given;
      return true;
    };
    auto const done = [&](step_result const& r) {
      ++trainer.steps_;
      return go_on_after(see, r);
    };
    auto flow = trainer.engine_->flow();
    flow.run(before, next, done);
    if (job const* const bad = flow.rejected()) trainer.reject(*bad);
    return trainer.steps_ - before;
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
  /// mini-batches are taken, and copied, before the results of those before them are seen, and
  /// train them all the same if `see` ends the training.
  ///
  /// law:    the bits of a call of step() for each
  /// throws: as step(), after the steps before the one that failed; what the range and `see` throw
  template <class Batches, class See = see_nothing>
  long train(Batches&& all, See see = {}) {
    return training_of<Trainer>::run(static_cast<Trainer&>(*this), all, see);
  }
};

}  // namespace pp::detail
