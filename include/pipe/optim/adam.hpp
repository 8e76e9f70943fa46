// SPDX-License-Identifier: BSL-1.0
//
// Adam and AdamW, as torch.optim.Adam and torch.optim.AdamW. Sources: Kingma and Ba, 2015;
// Loshchilov and Hutter, 2019.
#pragma once

#include <pipe/base/config.hpp>
#include <pipe/base/libm.hpp>
#include <pipe/base/math.hpp>
#include <pipe/optim/named_states.hpp>
#include <pipe/optim/optimizer.hpp>
#include <pipe/optim/setting_check.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp {

namespace detail {

/// m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g^2; w -= rate * mhat / (sqrt(vhat) +
/// epsilon), where mhat = m / (1 - beta1^step), vhat = v / (1 - beta2^step). Decoupled: w is first
/// multiplied by 1 - rate * weight_decay (AdamW); otherwise weight_decay * w is added to g (Adam).
template <bool Decoupled>
struct adam_formula {
  static constexpr int states = 2;
  static constexpr custom::named_states states_of() { return {{"exp_avg"}, {"exp_avg_sq"}}; }
  /// Both moments are averages from zero, whose bias a step corrects.
  template <class Settings, class Use>
  static constexpr void for_each_state_setting(Settings const& s, Use use) {
    use("beta1", s.beta1);
    use("beta2", s.beta2);
  }

  /// The settings and the context of a step, combined once in double.
  template <class T>
  struct coefficients {
    /// `decay`: the factor of w if decoupled, else of w in the gradient; `rest`: 1 - beta
    T scale, decay, beta1, rest1, beta2, rest2, rate, second, epsilon;
  };
  /// Both bias corrections go into the coefficients: `rate` is learning_rate / (1 - beta1^step),
  /// `second` is 1 / sqrt(1 - beta2^step).
  ///
  /// law: computed in double and rounded once to T
  template <class T, class Settings>
  static coefficients<T> prepare(Settings const& s, custom::update_context const& c) {
    double const decay = c.decay_scale * s.weight_decay;
    return {T(c.gradient_scale),
            T(Decoupled ? 1 - c.learning_rate * decay : decay),
            T(s.beta1),
            T(1 - s.beta1),
            T(s.beta2),
            T(1 - s.beta2),
            T(c.learning_rate / (1 - libm::pow(s.beta1, double(c.step)))),
            T(1 / libm::sqrt(1 - libm::pow(s.beta2, double(c.step)))),
            T(s.epsilon)};
  }
  /// throws: data_error for betas outside [0, 1), epsilon outside [1e-37, 1e30] or weight decay
  ///         outside [0, 1e30]
  template <class Settings>
  static void check(Settings const& s, custom::setting_check const& is) {
    is.fraction("beta1", s.beta1);
    is.fraction("beta2", s.beta2);
    is.positive("epsilon", s.epsilon);
    is.amount("weight_decay", s.weight_decay);
  }
  /// One element: returns the new w and updates the moments m and v.
  ///
  /// cost: reads w, g, m, v and writes w, m, v: 28 bytes per fp32 parameter, which bound it
  template <math::product P = math::product::exact, class T>
  PIPE_HD static PIPE_INLINE T apply(coefficients<T> const& c, T w, T g, T& m, T& v) {
    if constexpr (Decoupled)
      g = g * c.scale;
    else
      g = math::multiply_add<P>(g, c.scale, w * c.decay);
    m = math::multiply_add<P>(c.beta1, m, c.rest1 * g);
    v = math::multiply_add<P>(c.beta2, v, c.rest2 * (g * g));
    T const move = c.rate * m / math::multiply_add<P>(math::sqrt<P>(v), c.second, c.epsilon);
    return Decoupled ? math::multiply_add<P>(w, c.decay, -move) : w - move;
  }
};

}  // namespace detail

/// Adam: weight decay is added to the gradient, as in torch.optim.Adam.
struct Adam {
  double learning_rate = 1e-3;
  double beta1 = 0.9, beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;

  static constexpr char const* name = "Adam";
  static constexpr int states = 2;
  static constexpr custom::named_states states_of(custom::tensor_kind) {
    return detail::adam_formula<false>::states_of();
  }
  template <class Use>
  constexpr void for_each_state_setting(Use use) const {
    detail::adam_formula<false>::for_each_state_setting(*this, use);
  }
  void check(custom::setting_check const& is) const {
    detail::adam_formula<false>::check(*this, is);
  }
  template <class T>
  using coefficients = detail::adam_formula<false>::coefficients<T>;
  template <class T>
  coefficients<T> prepare(custom::update_context const& c) const {
    return detail::adam_formula<false>::prepare<T>(*this, c);
  }
  template <math::product P = math::product::exact, class T>
  PIPE_HD static PIPE_INLINE T apply(coefficients<T> const& c, T w, T g, T& m, T& v) {
    return detail::adam_formula<false>::apply<P>(c, w, g, m, v);
  }
};

/// Adam with decoupled weight decay, as in torch.optim.AdamW.
struct AdamW {
  double learning_rate = 1e-3;
  double beta1 = 0.9, beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.01;

  static constexpr char const* name = "AdamW";
  static constexpr int states = 2;
  static constexpr custom::named_states states_of(custom::tensor_kind) {
    return detail::adam_formula<true>::states_of();
  }
  template <class Use>
  constexpr void for_each_state_setting(Use use) const {
    detail::adam_formula<true>::for_each_state_setting(*this, use);
  }
  void check(custom::setting_check const& is) const {
    detail::adam_formula<true>::check(*this, is);
  }
  template <class T>
  using coefficients = detail::adam_formula<true>::coefficients<T>;
  template <class T>
  coefficients<T> prepare(custom::update_context const& c) const {
    return detail::adam_formula<true>::prepare<T>(*this, c);
  }
  template <math::product P = math::product::exact, class T>
  PIPE_HD static PIPE_INLINE T apply(coefficients<T> const& c, T w, T g, T& m, T& v) {
    return detail::adam_formula<true>::apply<P>(c, w, g, m, v);
  }
};

}  // namespace pp
PIPE_OPTIMIZED_END
