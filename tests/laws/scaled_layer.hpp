// SPDX-License-Identifier: BSL-1.0
//
// A layer of a user's own for values of any type.
#pragma once

#include <pipe/pipe.hpp>

namespace laws {

using namespace pp;

/// y = x (1 + factor)^2, by column. It is not linear in the factor, so that the gradient of the
/// factor reads the factor.
struct Scaled {
  static constexpr sample_shape result(sample_shape in) { return in; }
  static constexpr int parameters = 1;
  static constexpr custom::parameter parameter(int, sample_shape in) {
    return {1, in.columns(), "factor", {distribution::constant, 0.1f}, false};
  }
  template <class T>
  static float squared(T factor) {
    return (1 + float(factor)) * (1 + float(factor));
  }
  template <class T>
  static void forward(custom::forward<T> const& a) {
    for (long i = 0; i < a.samples * a.in.elements(); ++i)
      a.y[i] = T(float(a.x[i]) * squared(a.parameter[0][i % a.in.columns()]));
  }
  template <class T>
  static void input_gradient(custom::input_gradient<T> const& a) {
    for (long i = 0; i < a.samples * a.in.elements(); ++i)
      a.dx[i] = T(float(a.dy[i]) * squared(a.parameter[0][i % a.in.columns()]));
  }
  template <class T>
  static void weight_gradient(custom::weight_gradient<T> const& a) {
    for (long i = 0; i < a.samples * a.in.elements(); ++i)
      a.gradient[0][i % a.in.columns()] +=
          float(a.dy[i]) * float(a.x[i]) * 2 * (1 + float(a.parameter[0][i % a.in.columns()]));
  }
};

}  // namespace laws
