// SPDX-License-Identifier: BSL-1.0
//
// Lion: every element moves by the learning rate, in the direction of the sign of an average; one
// state where Adam has two. Source: Chen et al., Symbolic Discovery of Optimization Algorithms,
// 2023, algorithm 2.
#pragma once

#include <pipe/base/config.hpp>
#include <pipe/base/math.hpp>
#include <pipe/optim/named_states.hpp>
#include <pipe/optim/optimizer.hpp>
#include <pipe/optim/setting_check.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp {

/// c = beta1 m + (1 - beta1) g; w -= rate * (sign(c) + weight_decay * w); m = beta2 m + (1 - beta2)
/// g.
///
/// note: usual learning rates are 3 to 10 times smaller than AdamW's, and weight decays larger by
///       the same factor
struct Lion {
  double learning_rate = 1e-4;
  double beta1 = 0.9, beta2 = 0.99;
  double weight_decay = 0;

  static constexpr char const* name = "Lion";
  static constexpr int states = 1;
  static constexpr custom::named_states states_of(custom::tensor_kind) { return {{"exp_avg"}}; }
  /// throws: data_error for betas outside [0, 1) or weight decay outside [0, 1e30]
  void check(custom::setting_check const& is) const {
    is.fraction("beta1", beta1);
    is.fraction("beta2", beta2);
    is.amount("weight_decay", weight_decay);
  }

  template <class T>
  struct coefficients {
    /// `scale`: of the gradient; `decay`: 1 - rate * weight decay, the factor of w; `rest`: 1 -
    /// beta
    T scale, decay, rate, beta1, rest1, beta2, rest2;
  };
  template <class T>
  coefficients<T> prepare(custom::update_context const& c) const {
    return {T(c.gradient_scale), T(1 - c.learning_rate * weight_decay * c.decay_scale),
            T(c.learning_rate),  T(beta1),
            T(1 - beta1),        T(beta2),
            T(1 - beta2)};
  }
  /// One element: returns the new w and updates the momentum m.
  ///
  /// law:  an element whose direction is 0 moves by its weight decay only
  /// cost: reads w, g, m and writes w, m: 20 bytes per fp32 parameter, which bound it
  template <math::product P = math::product::exact, class T>
  PIPE_HD static PIPE_INLINE T apply(coefficients<T> const& c, T w, T g, T& m) {
    g = g * c.scale;
    T const direction = math::multiply_add<P>(c.beta1, m, c.rest1 * g);
    m = math::multiply_add<P>(c.beta2, m, c.rest2 * g);
    return math::multiply_add<P>(w, c.decay, -math::with_sign(c.rate, direction));
  }
};

}  // namespace pp
PIPE_OPTIMIZED_END
