// SPDX-License-Identifier: BSL-1.0
//
// Learning-rate schedules: linear warm-up, an optional plateau, then a decay to a floor. Any
// function of the step can take their place.
#pragma once

#include <any>
#include <concepts>
#include <type_traits>
#include <utility>

#include <pipe/base/config.hpp>
#include <pipe/base/libm.hpp>
#include <pipe/optim/setting_check.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp {

/// The shape of the decay from 1 to the floor.
enum class decay_shape {
  constant,
  linear,
  cosine,
  // Falls fast first. Source: Hägele et al., Scaling Laws and Compute-Optimal Training, 2024
  one_minus_sqrt,
};

/// A factor on the learning rate at step 1, 2, ...: rises linearly to 1 over `warm_up` steps, is 1
/// for `stable` steps, then follows `shape` until `steps`, from where on it is `floor` (constant:
/// 1).
///
/// law: 0 < result <= 1 for floor > 0; result == 1 from step == warm_up to step == warm_up + stable
/// note: a trainer refuses negative numbers, a floor above 1, and `steps` that are missing or end
///       before the decay begins (check)
struct learning_rate_schedule {
  decay_shape shape = decay_shape::cosine;
  long warm_up = 0;
  /// Steps at the full rate after warm-up.
  long stable = 0;
  long steps = 0;  ///< of the whole run; a constant shape needs none
  double floor = 0.1;

  void check(custom::setting_check const& is) const {
    is.count("warm_up", warm_up, 0);
    is.count("stable", stable, 0);
    if (!(floor >= 0 && floor <= 1)) is.refuse("floor", floor, "a number in [0, 1]");
    if (shape == decay_shape::constant) return;
    is.count("steps", steps, warm_up > 0 ? warm_up : 1);
    // The decay may be empty: steps == warm_up + stable.
    is.count("steps - warm_up", steps - warm_up, stable);
  }

  /// The factor at a step, counted from 1.
  ///
  /// needs: settings that check() accepts
  double operator()(long step) const {
    if (step <= warm_up && warm_up > 0) return double(step) / double(warm_up);
    long const from = warm_up + stable;
    if (shape == decay_shape::constant || (stable > 0 && step <= from)) return 1;
    double done = steps > from ? double(step - from) / double(steps - from) : 1;
    if (done > 1) done = 1;
    return floor + (1 - floor) * falling(done);
  }

 private:
  /// The decay from 1 to 0 after a share `done` of it, in [0, 1].
  ///
  /// needs: `shape` is not constant
  double falling(double done) const {
    if (shape == decay_shape::linear) return 1 - done;
    if (shape == decay_shape::one_minus_sqrt) return 1 - libm::sqrt(done);
    return 0.5 * (1 + libm::cos(3.14159265358979323846 * done));
  }
};

/// WSD (warm-up, stable, decay): up over `warm_up` steps, at full rate until the last `decay` of
/// `steps`, then down to `floor`. A run can be continued from any step at full rate; the decay
/// costs about a tenth of it. Source: Hu et al., MiniCPM, 2024.
///
/// law: if warm_up + decay > steps, the decay begins after warm-up and is shorter
constexpr learning_rate_schedule warm_up_stable_decay(
    long warm_up, long decay, long steps, double floor = 0,
    decay_shape shape = decay_shape::one_minus_sqrt) {
  long const stable = steps - warm_up - decay;
  return {shape, warm_up, stable > 0 ? stable : 0, steps, floor};
}

namespace detail {

/// A function of the step of any type, or none. In place of std::function<double(long)>, whose
/// header would cost every program more compile time.
class learning_rate_function {
 public:
  learning_rate_function() noexcept = default;  // g++ 12 fails to find that out by itself
  /// Holds f; an empty pointer or std::function is no schedule.
  ///
  /// needs: F is copyable, as std::any requires; f is called with steps from 1
  template <std::invocable<long> F>
    requires(!std::same_as<F, learning_rate_function>)
  learning_rate_function(F f) {
    if constexpr (may_be_empty<F>)
      if (!f) return;
    call_ = [](std::any& kept, long step) {
      return static_cast<double>((*std::any_cast<F>(&kept))(step));
    };
    if constexpr (checked_settings<F>)
      check_ = [](std::any const& kept, custom::setting_check const& is) {
        std::any_cast<F>(&kept)->check(is);
      };
    function_ = std::move(f);
  }

  explicit operator bool() const { return call_ != nullptr; }
  /// needs: there is a function
  double operator()(long step) const { return call_(function_, step); }
  /// Checks the settings of the function, if it has any.
  void check(custom::setting_check const& is) const {
    if (check_ != nullptr) check_(function_, is);
  }

 private:
  /// Whether a value of type F can be tested for being empty: a pointer, or a type with operator
  /// bool, such as std::function.
  template <class F>
  static constexpr bool may_be_empty =
      std::is_pointer_v<F> || requires(F const& f) { f.operator bool(); };

  /// mutable: a function whose call operator is not const may be called, too.
  mutable std::any function_;
  double (*call_)(std::any& function, long step) = nullptr;
  /// Null if the type of the function has no check().
  void (*check_)(std::any const& function, custom::setting_check const& is) = nullptr;
};

}  // namespace detail

}  // namespace pp
PIPE_OPTIMIZED_END
