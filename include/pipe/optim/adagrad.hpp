// SPDX-License-Identifier: BSL-1.0
//
// Adagrad, as torch.optim.Adagrad: a gradient is divided by the root of the sum of all its squares
// so far. Source: Duchi, Hazan and Singer, Adaptive Subgradient Methods for Online Learning and
// Stochastic Optimization, 2011.
#pragma once

#include <pipe/base/config.hpp>
#include <pipe/base/math.hpp>
#include <pipe/optim/named_states.hpp>
#include <pipe/optim/optimizer.hpp>
#include <pipe/optim/setting_check.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp {

/// d = g + weight_decay * w; v = v + d^2; w -= rate / (1 + (step - 1) learning_rate_decay) * d /
/// (sqrt(v) + epsilon).
struct Adagrad {
  double learning_rate = 0.01;
  double learning_rate_decay = 0;  ///< PyTorch's lr_decay
  double weight_decay = 0;
  double initial_accumulator_value = 0;  ///< what v begins with
  double epsilon = 1e-10;

  static constexpr char const* name = "Adagrad";
  static constexpr int states = 1;
  static constexpr custom::named_states states_of(custom::tensor_kind) { return {{"sum"}}; }
  /// Every step reads it: see apply().
  template <class Use>
  constexpr void for_each_state_setting(Use use) const {
    use("initial_accumulator_value", initial_accumulator_value);
  }
  /// throws: data_error for epsilon outside [1e-37, 1e30], or another setting outside [0, 1e30];
  ///         trainers check the learning rate themselves
  void check(custom::setting_check const& is) const {
    is.amount("learning_rate_decay", learning_rate_decay);
    is.amount("weight_decay", weight_decay);
    is.amount("initial_accumulator_value", initial_accumulator_value);
    is.positive("epsilon", epsilon);
  }

  template <class T>
  struct coefficients {
    /// `decay`: of w in the gradient; `least`: what v begins with
    T rate, scale, decay, least, epsilon;
  };
  /// law: computed in double and rounded once to T
  template <class T>
  coefficients<T> prepare(custom::update_context const& c) const {
    return {T(c.learning_rate / (1 + double(c.step - 1) * learning_rate_decay)),
            T(c.gradient_scale), T(c.decay_scale * weight_decay), T(initial_accumulator_value),
            T(epsilon)};
  }
  /// One element: returns the new w and updates the sum v.
  ///
  /// law:  v = 0, as memory begins, counts as `least`, whatever the step: a sum is never less, and
  ///       a GPU may have rejected the first steps when the coefficients of later ones are made
  /// cost: reads w, g, v and writes w, v: 20 bytes per fp32 parameter, which bound it
  template <math::product P = math::product::exact, class T>
  PIPE_HD static PIPE_INLINE T apply(coefficients<T> const& c, T w, T g, T& v) {
    T const d = math::multiply_add<P>(g, c.scale, c.decay * w);
    v = math::multiply_add<P>(d, d, v < c.least ? c.least : v);
    return w - c.rate * d / (math::sqrt<P>(v) + c.epsilon);
  }
};

}  // namespace pp
PIPE_OPTIMIZED_END
