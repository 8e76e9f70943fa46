// SPDX-License-Identifier: BSL-1.0
//
// A user-defined formula as a layer: it fuses into the same kernels as the library's activations.
// docs/howto/own_layers.md shows how to write and check one.
#pragma once

#include <concepts>

#include <pipe/base/config.hpp>
#include <pipe/base/math.hpp>
#include <pipe/graph/builder.hpp>
#include <pipe/nn/activation.hpp>

namespace pp {

/// y = F::forward(x), element by element, and dy/dx = F::derivative(x), or F::derivative(y) if F
/// has `static constexpr bool derivative_reads_output = true`. The functions take and return float,
/// or are templates.
///
/// law: gradients are right if the derivative is: check_gradients<Map<F>, Input<...>>() checks it
template <class F>
struct Map {
  static constexpr bool derivative_reads_output = [] {
    if constexpr (requires { F::derivative_reads_output; })
      return bool(F::derivative_reads_output);
    else
      return false;
  }();

  /// Whether the functions work on numbers of type T; functions of float alone compute in float.
  template <class T>
  static constexpr bool takes_every = requires(T x) {
    { F::forward(x) } -> std::same_as<T>;
    { F::derivative(x) } -> std::same_as<T>;
  };

  template <class Builder>
  static constexpr void describe(Builder& b) {
    constexpr bool has_forward = requires(float x) {
      { F::forward(x) } -> std::convertible_to<float>;
    };
    constexpr bool has_derivative = requires(float x) {
      { F::derivative(x) } -> std::convertible_to<float>;
    };
    if constexpr (!has_forward || !has_derivative)
      b.report_missing(wrong::formula_needs_forward_and_derivative,
                       has_forward ? wrong::member::derivative : wrong::member::forward);
    else if (b.needs_numbers())
      b.set(b.map(b.current(), derivative_reads_output));
  }
// Functions of the host alone would do nothing on a GPU, and nvcc only warns about them.
#ifdef __CUDACC__
#pragma nv_diagnostic push
#pragma nv_diag_error 20011, 20013, 20014, 20015
#endif
  template <math::product P = math::product::exact, class T>
  PIPE_HD static PIPE_INLINE T forward(T x) {
    if constexpr (requires { F::template forward<P>(x); })
      return F::template forward<P>(x);
    else if constexpr (takes_every<T>)
      return F::forward(x);
    else
      return T(F::forward(float(x)));
  }
  template <math::product P = math::product::exact, class T>
  PIPE_HD static PIPE_INLINE T derivative(T x) {
    if constexpr (requires { F::template derivative<P>(x); })
      return F::template derivative<P>(x);
    else if constexpr (takes_every<T>)
      return F::derivative(x);
    else
      return T(F::derivative(float(x)));
  }
#ifdef __CUDACC__
#pragma nv_diagnostic pop
#endif
};

}  // namespace pp
