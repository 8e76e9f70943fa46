// SPDX-License-Identifier: BSL-1.0
//
// NAdam with decoupled weight decay, as torch.optim.NAdam with decoupled_weight_decay=True: Adam
// with Nesterov's momentum, which is lower in the first steps. A gradient counts as little as 1
// minus the momentum, and the rest of a step looks ahead, so gradients that are some updates old do
// less harm. Sources: Dozat, Incorporating Nesterov Momentum into Adam, 2016; for old gradients
// Ajanthan et al., Nesterov Method for Asynchronous Pipeline Parallel Optimization, 2025.
#pragma once

#include <pipe/base/config.hpp>
#include <pipe/base/libm.hpp>
#include <pipe/base/math.hpp>
#include <pipe/optim/adam.hpp>
#include <pipe/optim/named_states.hpp>
#include <pipe/optim/optimizer.hpp>
#include <pipe/optim/setting_check.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp {

/// With mu(t) = beta1 (1 - 0.96^(t momentum_decay) / 2), P(t) the product of mu(1) to mu(t), and m,
/// v as in Adam: w = (1 - rate * weight_decay) w - rate * ((1 - mu(t)) / (1 - P(t)) g + mu(t + 1) /
/// (1 - P(t + 1)) m) / (sqrt(vhat) + epsilon).
struct NAdam {
  double learning_rate = 2e-3;
  double beta1 = 0.9, beta2 = 0.999;
  /// How fast the momentum grows from beta1 / 2 to beta1: half of the way after 17 / momentum_decay
  /// steps.
  double momentum_decay = 4e-3;
  double epsilon = 1e-8;
  double weight_decay = 0;

  static constexpr char const* name = "NAdam";
  static constexpr int states = 2;
  static constexpr custom::named_states states_of(custom::tensor_kind) {
    return detail::adam_formula<true>::states_of();
  }
  template <class Use>
  constexpr void for_each_state_setting(Use use) const {
    detail::adam_formula<true>::for_each_state_setting(*this, use);
    use("momentum_decay", momentum_decay);
  }
  /// The number that PyTorch keeps for each parameter beside the step.
  template <class Use>
  void for_each_state_number(long step, Use use) const {
    use("mu_product", product(step));
  }
  /// throws: as adam_formula::check(), and data_error for a momentum decay outside [0, 1e30]
  void check(custom::setting_check const& is) const {
    detail::adam_formula<true>::check(*this, is);
    is.amount("momentum_decay", momentum_decay);
  }

  /// mu of a step.
  double momentum_in(long step) const {
    return beta1 * (1 - 0.5 * libm::pow(0.96, double(step) * momentum_decay));
  }
  /// P of a step, and 0 where it is too small to change 1 - P. A function of the step and the
  /// settings, so no state; PyTorch's files have it for each parameter.
  ///
  /// cost: an iteration for each step, but not more than it takes to become that small: 42 /
  ///       -log(beta1)
  double product(long step) const {
    double const each = libm::pow(0.96, momentum_decay);
    double of_all = 1, decayed = 0.5;
    for (long i = 1; i <= step; ++i) {
      decayed *= each;
      of_all *= beta1 * (1 - decayed);
      if (of_all < 0x1p-60) return 0;
    }
    return of_all;
  }

  template <class T>
  struct coefficients {
    /// `current`, `ahead`: the factors of g and m; `second`: 1 / sqrt(1 - beta2^step)
    T scale, decay, beta1, rest1, beta2, rest2, current, ahead, second, epsilon;
  };
  /// law: computed in double and rounded once to T
  template <class T>
  coefficients<T> prepare(custom::update_context const& c) const {
    double const now = momentum_in(c.step), next = momentum_in(c.step + 1);
    double const of_all = product(c.step);
    return {T(c.gradient_scale),
            T(1 - c.learning_rate * weight_decay * c.decay_scale),
            T(beta1),
            T(1 - beta1),
            T(beta2),
            T(1 - beta2),
            T(c.learning_rate * (1 - now) / (1 - of_all)),
            T(c.learning_rate * next / (1 - of_all * next)),
            T(1 / libm::sqrt(1 - libm::pow(beta2, double(c.step)))),
            T(epsilon)};
  }
  /// One element: returns the new w and updates the moments m and v.
  ///
  /// cost: reads w, g, m, v and writes w, m, v: 28 bytes per fp32 parameter, which bound it
  template <math::product P = math::product::exact, class T>
  PIPE_HD static PIPE_INLINE T apply(coefficients<T> const& c, T w, T g, T& m, T& v) {
    g = g * c.scale;
    m = math::multiply_add<P>(c.beta1, m, c.rest1 * g);
    v = math::multiply_add<P>(c.beta2, v, c.rest2 * (g * g));
    T const move = math::multiply_add<P>(c.current, g, c.ahead * m) /
                   math::multiply_add<P>(math::sqrt<P>(v), c.second, c.epsilon);
    return math::multiply_add<P>(w, c.decay, -move);
  }
};

}  // namespace pp
PIPE_OPTIMIZED_END
