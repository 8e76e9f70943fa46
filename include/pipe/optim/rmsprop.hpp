// SPDX-License-Identifier: BSL-1.0
//
// RMSprop, as torch.optim.RMSprop: a gradient is divided by the root of an average of its squares
// or, centred, by an estimate of its standard deviation, which needs one array more. Sources:
// Hinton, Neural Networks for Machine Learning, lecture 6e, 2012; centred: Graves, Generating
// Sequences With Recurrent Neural Networks, 2013.
#pragma once

#include <string_view>

#include <pipe/base/config.hpp>
#include <pipe/base/math.hpp>
#include <pipe/optim/named_states.hpp>
#include <pipe/optim/optimizer.hpp>
#include <pipe/optim/setting_check.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp {

namespace detail {

/// d = g + weight_decay * w; v = alpha v + (1 - alpha) d^2; m = momentum m + d / (sqrt(s) +
/// epsilon); w -= rate * m, where s = v. Centred: a = alpha a + (1 - alpha) d, s = v - a^2.
struct rmsprop_formula {
  /// Without momentum PyTorch keeps no momentum_buffer.
  template <class Settings>
  static bool uses_state(Settings const& s, std::string_view array) {
    return s.momentum > 0 || array != "momentum_buffer";
  }

  template <class T>
  struct coefficients {
    /// `decay`: of w in the gradient; `rest`: 1 - alpha
    T rate, scale, decay, alpha, rest, momentum, epsilon;
  };
  template <class T, class Settings>
  static coefficients<T> prepare(Settings const& s, custom::update_context const& c) {
    return {T(c.learning_rate), T(c.gradient_scale), T(c.decay_scale * s.weight_decay),
            T(s.alpha),         T(1 - s.alpha),      T(s.momentum),
            T(s.epsilon)};
  }
  /// throws: data_error for alpha or momentum outside [0, 1), epsilon outside [1e-37, 1e30] or
  ///         weight decay outside [0, 1e30]
  template <class Settings>
  static void check(Settings const& s, custom::setting_check const& is) {
    is.fraction("alpha", s.alpha);
    is.positive("epsilon", s.epsilon);
    is.amount("weight_decay", s.weight_decay);
    is.fraction("momentum", s.momentum);
  }
  /// One element: returns the new w and updates v and m.
  ///
  /// cost: reads w, g, v, m and writes w, v, m: 28 bytes per fp32 parameter, which bound it
  template <math::product P = math::product::exact, class T>
  PIPE_HD static PIPE_INLINE T apply(coefficients<T> const& c, T w, T g, T& v, T& m) {
    T const d = math::multiply_add<P>(g, c.scale, c.decay * w);
    v = math::multiply_add<P>(c.alpha, v, c.rest * (d * d));
    return moved<P>(c, w, d, v, m);
  }
  /// Centred: updates a, too.
  ///
  /// law:  v - a^2 below 0, which is rounding, counts as 0: PyTorch's root of it is NaN
  /// cost: reads w, g, v, m, a and writes w, v, m, a: 36 bytes per fp32 parameter
  template <math::product P = math::product::exact, class T>
  PIPE_HD static PIPE_INLINE T apply(coefficients<T> const& c, T w, T g, T& v, T& m, T& a) {
    T const d = math::multiply_add<P>(g, c.scale, c.decay * w);
    v = math::multiply_add<P>(c.alpha, v, c.rest * (d * d));
    a = math::multiply_add<P>(c.alpha, a, c.rest * d);
    return moved<P>(c, w, d, math::positive_part(math::multiply_add<P>(-a, a, v)), m);
  }

 private:
  template <math::product P, class T>
  PIPE_HD static PIPE_INLINE T moved(coefficients<T> const& c, T w, T d, T spread, T& m) {
    m = math::multiply_add<P>(c.momentum, m, d / (math::sqrt<P>(spread) + c.epsilon));
    return math::multiply_add<P>(-c.rate, m, w);
  }
};

}  // namespace detail

/// torch.optim.RMSprop: the gradient divided by the root of an average of its squares.
struct RMSprop {
  double learning_rate = 0.01;
  double alpha = 0.99;
  double epsilon = 1e-8;
  double weight_decay = 0;
  double momentum = 0;

  static constexpr char const* name = "RMSprop";
  static constexpr int states = 2;
  static constexpr custom::named_states states_of(custom::tensor_kind) {
    return {{"square_avg"}, {"momentum_buffer"}};
  }
  bool uses_state(std::string_view array) const {
    return detail::rmsprop_formula::uses_state(*this, array);
  }
  void check(custom::setting_check const& is) const { detail::rmsprop_formula::check(*this, is); }
  template <class T>
  using coefficients = detail::rmsprop_formula::coefficients<T>;
  template <class T>
  coefficients<T> prepare(custom::update_context const& c) const {
    return detail::rmsprop_formula::prepare<T>(*this, c);
  }
  template <math::product P = math::product::exact, class T>
  PIPE_HD static PIPE_INLINE T apply(coefficients<T> const& c, T w, T g, T& v, T& m) {
    return detail::rmsprop_formula::apply<P>(c, w, g, v, m);
  }
};

/// torch.optim.RMSprop with centered=True: the gradient divided by an estimate of its standard
/// deviation. Its third state is more than a GPU has kernels for.
struct CenteredRMSprop {
  double learning_rate = 0.01;
  double alpha = 0.99;
  double epsilon = 1e-8;
  double weight_decay = 0;
  double momentum = 0;

  static constexpr char const* name = "CenteredRMSprop";
  static constexpr int states = 3;
  static constexpr custom::named_states states_of(custom::tensor_kind) {
    return {{"square_avg"}, {"momentum_buffer"}, {"grad_avg"}};
  }
  bool uses_state(std::string_view array) const {
    return detail::rmsprop_formula::uses_state(*this, array);
  }
  void check(custom::setting_check const& is) const { detail::rmsprop_formula::check(*this, is); }
  template <class T>
  using coefficients = detail::rmsprop_formula::coefficients<T>;
  template <class T>
  coefficients<T> prepare(custom::update_context const& c) const {
    return detail::rmsprop_formula::prepare<T>(*this, c);
  }
  template <math::product P = math::product::exact, class T>
  PIPE_HD static PIPE_INLINE T apply(coefficients<T> const& c, T w, T g, T& v, T& m, T& a) {
    return detail::rmsprop_formula::apply<P>(c, w, g, v, m, a);
  }
};

}  // namespace pp
PIPE_OPTIMIZED_END
