// SPDX-License-Identifier: BSL-1.0
//
// Adamax, as torch.optim.Adamax: Adam with a decaying maximum of the gradients' sizes in place of
// an average of their squares. Source: Kingma and Ba, Adam: A Method for Stochastic Optimization,
// 2015, algorithm 2.
#pragma once

#include <pipe/base/config.hpp>
#include <pipe/base/libm.hpp>
#include <pipe/base/math.hpp>
#include <pipe/optim/named_states.hpp>
#include <pipe/optim/optimizer.hpp>
#include <pipe/optim/setting_check.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp {

/// d = g + weight_decay * w; m = beta1 m + (1 - beta1) d; u = max(beta2 u, |d| + epsilon); w -=
/// rate
/// * m / (1 - beta1^step) / u.
struct Adamax {
  double learning_rate = 2e-3;
  double beta1 = 0.9, beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;

  static constexpr char const* name = "Adamax";
  static constexpr int states = 2;
  static constexpr custom::named_states states_of(custom::tensor_kind) {
    return {{"exp_avg"}, {"exp_inf"}};
  }
  /// The average is one from zero, whose bias a step corrects; the maximum has none.
  template <class Use>
  constexpr void for_each_state_setting(Use use) const {
    use("beta1", beta1);
  }
  /// throws: data_error for betas outside [0, 1), epsilon outside [1e-37, 1e30] or weight decay
  ///         outside [0, 1e30]
  void check(custom::setting_check const& is) const {
    is.fraction("beta1", beta1);
    is.fraction("beta2", beta2);
    is.positive("epsilon", epsilon);
    is.amount("weight_decay", weight_decay);
  }

  template <class T>
  struct coefficients {
    /// `decay`: of w in the gradient; `rest1`: 1 - beta1; `rate`: learning_rate / (1 - beta1^step)
    T scale, decay, beta1, rest1, beta2, rate, epsilon;
  };
  /// law: computed in double and rounded once to T
  template <class T>
  coefficients<T> prepare(custom::update_context const& c) const {
    return {T(c.gradient_scale),
            T(c.decay_scale * weight_decay),
            T(beta1),
            T(1 - beta1),
            T(beta2),
            T(c.learning_rate / (1 - libm::pow(beta1, double(c.step)))),
            T(epsilon)};
  }
  /// One element: returns the new w and updates the average m and the maximum u.
  ///
  /// law:  u is at least epsilon
  /// cost: reads w, g, m, u and writes w, m, u: 28 bytes per fp32 parameter, which bound it
  template <math::product P = math::product::exact, class T>
  PIPE_HD static PIPE_INLINE T apply(coefficients<T> const& c, T w, T g, T& m, T& u) {
    T const d = math::multiply_add<P>(g, c.scale, c.decay * w);
    m = math::multiply_add<P>(c.beta1, m, c.rest1 * d);
    T const size = math::magnitude(d) + c.epsilon, before = c.beta2 * u;
    u = before < size ? size : before;
    return w - c.rate * m / u;
  }
};

}  // namespace pp
PIPE_OPTIMIZED_END
