// SPDX-License-Identifier: BSL-1.0
//
// Stochastic gradient descent with momentum, as torch.optim.SGD.
#pragma once

#include <string_view>

#include <pipe/base/config.hpp>
#include <pipe/base/math.hpp>
#include <pipe/optim/named_states.hpp>
#include <pipe/optim/optimizer.hpp>
#include <pipe/optim/setting_check.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp {

/// d = g + weight_decay * w; m = momentum * m + d; w -= learning_rate * (nesterov ? d + momentum *
/// m : m)
struct SGD {
  double learning_rate = 0.01;
  double momentum = 0;
  double weight_decay = 0;
  bool nesterov = false;

  static constexpr char const* name = "SGD";
  static constexpr int states = 1;
  static constexpr custom::named_states states_of(custom::tensor_kind) {
    return {{"momentum_buffer"}};
  }
  /// Without momentum PyTorch has no buffer.
  bool uses_state(std::string_view) const { return momentum > 0; }
  /// throws: data_error for momentum outside [0, 1) or weight decay outside [0, 1e30]; trainers
  ///         check the learning rate themselves
  void check(custom::setting_check const& is) const {
    is.fraction("momentum", momentum);
    is.amount("weight_decay", weight_decay);
  }

  /// The settings of a step in T; look_ahead * m + current * d is Nesterov's combination, or m
  /// alone.
  template <class T>
  struct coefficients {
    T rate, scale, momentum, decay, look_ahead, current;
  };
  template <class T>
  coefficients<T> prepare(custom::update_context const& c) const {
    return {T(c.learning_rate),
            T(c.gradient_scale),
            T(momentum),
            T(c.decay_scale * weight_decay),
            T(nesterov ? momentum : 1),
            T(nesterov ? 1 : 0)};
  }
  /// One element: returns the new w and updates the momentum m.
  ///
  /// needs: m = 0 before the first step; then m = d, as in PyTorch without dampening
  /// cost:  reads w, g, m and writes w, m: 20 bytes per fp32 parameter, which bound it
  template <math::product P = math::product::exact, class T>
  PIPE_HD static PIPE_INLINE T apply(coefficients<T> const& c, T w, T g, T& m) {
    T const d = math::multiply_add<P>(g, c.scale, c.decay * w);
    m = math::multiply_add<P>(c.momentum, m, d);
    return math::multiply_add<P>(-c.rate, math::multiply_add<P>(c.current, d, c.look_ahead * m), w);
  }
};

}  // namespace pp
PIPE_OPTIMIZED_END
