// SPDX-License-Identifier: BSL-1.0
//
// Advice about mini-batches that harm a run. A mini-batch whose loss or gradients are not finite
// has changed nothing and is left out. A mini-batch after which the loss is far above its recent
// values has harmed the parameters: the run goes back to its last checkpoint and leaves that
// mini-batch out.
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <algorithm>
#include <cmath>
#include <concepts>
#include <set>
#include <string>

#include <pipe/base/config.hpp>
#include <pipe/base/error.hpp>
#include <pipe/base/real_text.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/runtime/job.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp {

/// Detection of values far above recent values: more than `times` mean deviations above the mean.
/// Mean and deviation follow the last `window` values or so; a deviation counts as at least a
/// hundredth of the mean. A spike enters neither mean.
class spike_detector {
 public:
  /// window: number of values, at least 2; none of the first `window` values is a spike
  ///
  /// throws: data_error for a window below 2 or `times` not above 0
  explicit spike_detector(double times = 8, long window = 50) : times_(times), window_(window) {
    if (window < 2 || !(times > 0))
      detail::throw_error<data_error>(
          {"spike_detector: expected a window of at least 2 and times above 0, got ", window,
           " and ", times});
  }

  /// Whether a value is a spike. Infinity and not-a-number are spikes, also among the first values.
  bool add(double x) {
    if (!std::isfinite(x)) return true;
    double const usual = std::max(deviation_, std::fabs(mean_) / 100);
    if (seen_ >= window_ && x - mean_ > times_ * usual) return true;
    seen_ = std::min(seen_ + 1, window_);
    double const off = std::fabs(x - mean_);
    mean_ += (x - mean_) / double(seen_);
    // The first value has no mean before it.
    if (seen_ > 1) deviation_ += (off - deviation_) / double(seen_ - 1);
    return false;
  }

 private:
  double times_;
  long window_, seen_ = 0;
  double mean_ = 0, deviation_ = 0;
};

/// Settings of a guard. A loss shows the harm of the step before; a gradient norm shows the harm of
/// its own step, but varies more, and does no harm where settings.clip_norm limits it.
struct step_guard_settings {
  spike_detector loss{8};            ///< finds spikes of the loss
  spike_detector gradient_norm{30};  ///< finds spikes of the norm
  long most = 20;                    ///< mini-batches that may be left out
};

/// A guard of a training loop. `position` is the program's number of a mini-batch:
///
///     step_guard guard;
///     for (long position = 0; trainer.steps() < steps;) {
///       if (guard.leaves_out(position)) { ++position; continue; }
///       auto const advice = guard.step(position, [&] { return trainer.step(batch(position)); });
///       if (advice == step_guard::advice::rewind)
///         position = trainer.load(path).position.number();
///       else
///         ++position;
///     }
///
/// A guard's state is in no checkpoint: a run that is resumed in another program meets a bad
/// mini-batch once more, and in the first `window` steps its detectors find no spikes.
class step_guard {
 public:
  /// keep: the step was good. leave_out: the trainer is as before the step. rewind: load the last
  /// checkpoint. After leave_out and rewind, leaves_out(position) is true.
  enum class advice : unsigned char { keep, leave_out, rewind };

  explicit step_guard(step_guard_settings s = {}) : settings_(s) {}

  /// Whether a mini-batch did harm before.
  bool leaves_out(long position) const { return left_out_.contains(position); }
  /// The mini-batches that did harm, in ascending order.
  std::set<long> const& left_out() const { return left_out_; }
  /// The result of the last step() that made a step.
  step_result const& last() const { return last_; }

  /// Makes a step and judges it.
  ///
  /// throws: pp::error when more than `most` mini-batches did harm, so that the data is not the
  ///         cause; what make() throws, except not_finite
  template <std::invocable Make>
  advice step(long position, Make make) {
    try {
      last_ = make();
    } catch (not_finite const& e) {
      return remember(position, advice::leave_out, e.what());
    }
    // Both detectors see every good step.
    bool const by_loss = settings_.loss.add(last_.loss);
    bool const by_norm = !last_.skipped && settings_.gradient_norm.add(last_.gradient_norm);
    if (!by_loss && !by_norm) return advice::keep;
    return remember(position, advice::rewind,
                    (by_loss ? "a loss of " : "a gradient norm of ") +
                        std::string(detail::real_text(by_loss ? last_.loss : last_.gradient_norm, 6,
                                                      std::chars_format::fixed)) +
                        " is a spike");
  }

 private:
  advice remember(long position, advice what, std::string const& why) {
    left_out_.insert(position);
    if (long(left_out_.size()) > settings_.most)
      throw error("step_guard: left out " + std::to_string(left_out_.size()) +
                  " harmful mini-batches, more than `most`, " + std::to_string(settings_.most) +
                  "; the last one, at position " + std::to_string(position) + ": " + why);
    return what;
  }

  step_guard_settings settings_;
  std::set<long> left_out_;
  step_result last_{};
};

}  // namespace pp
PIPE_OPTIMIZED_END
