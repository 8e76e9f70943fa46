// SPDX-License-Identifier: BSL-1.0
//
// Activations. Each is a formula, written once for every backend, and a layer that maps it over the
// current value. User-defined formulas satisfy the same concept and fuse into the same kernels.
#pragma once

#include <concepts>

#include <pipe/base/config.hpp>
#include <pipe/base/constant.hpp>
#include <pipe/base/math.hpp>
#include <pipe/graph/diagnostics.hpp>

namespace pp {

namespace detail {

/// y = forward(x) and dy/dx. The derivative is a function of the output where possible: the output
/// is stored anyway as the next layer's input, so nothing else has to be. Mark both functions
/// PIPE_HD PIPE_INLINE, as those below: a formula that is not inlined is computed one element at a
/// time. On the host a product and a sum are rounded twice. Where one rounding is meant, the
/// functions have a first template parameter `math::product P = math::product::exact`, by which
/// kernels say whether they have fused multiply-adds, and call math::multiply_add<P>; the functions
/// of `math` take P as well.
template <class F>
concept formula = requires(float x) {
  { F::forward(x) } -> std::same_as<float>;
  { F::derivative(x) } -> std::same_as<float>;
  { F::derivative_reads_output } -> std::convertible_to<bool>;
  typename constants<is_read(F::derivative_reads_output)>;
};

/// The first member that F, which is not a formula, lacks.
template <class F>
constexpr wrong::member missing_of_formula() {
  if constexpr (!requires(float x) {
                  { F::forward(x) } -> std::same_as<float>;
                })
    return wrong::member::forward;
  else if constexpr (!requires(float x) {
                       { F::derivative(x) } -> std::same_as<float>;
                     })
    return wrong::member::derivative;
  else
    return wrong::member::derivative_reads_output;
}
/// Records the fault that F is not a formula.
template <class F, class Builder>
constexpr void complain_of_formula(Builder& b) {
  constexpr wrong::member missing = missing_of_formula<F>();
  constexpr bool is_there = missing == wrong::member::derivative_reads_output &&
                            requires { bool(F::derivative_reads_output); };
  if constexpr (is_there)
    b.report_value(missing);
  else
    b.report_missing(wrong::formula_needs_forward_and_derivative, missing);
}

}  // namespace detail

/// The layer of a formula: F derives from Activation<F>.
///
/// shape:  any -> the same
template <class F>
struct Activation {
  using derived = F;
  template <class Builder>
  static constexpr void describe(Builder& b) {
    if constexpr (detail::formula<F>) {
      if (b.needs_numbers()) b.set(b.map(b.current(), F::derivative_reads_output));
    } else {
      detail::complain_of_formula<F>(b);
    }
  }
};

/// max(x, 0)
struct ReLU : Activation<ReLU> {
  static constexpr bool derivative_reads_output = true;
  template <math::product P = math::product::exact, class T>
  PIPE_HD static PIPE_INLINE T forward(T x) {
    return x < T(0) ? T(0) : x;  // keeps NaN
  }
  /// 1 where y > 0, else 0: also at x = 0, as in PyTorch.
  template <math::product P = math::product::exact, class T>
  PIPE_HD static PIPE_INLINE T derivative(T y) {
    return y > T(0) ? T(1) : T(0);
  }
};

/// tanh(x)
struct Tanh : Activation<Tanh> {
  static constexpr bool derivative_reads_output = true;
  template <math::product P = math::product::exact, class T>
  PIPE_HD static PIPE_INLINE T forward(T x) {
    return math::tanh<P>(x);
  }
  /// 1 - tanh(x)^2, from y = tanh(x).
  template <math::product P = math::product::exact, class T>
  PIPE_HD static PIPE_INLINE T derivative(T y) {
    return math::multiply_add<P>(-y, y, T(1));
  }
};

/// 1 / (1 + exp(-x))
struct Sigmoid : Activation<Sigmoid> {
  static constexpr bool makes_probabilities = true;
  static constexpr bool derivative_reads_output = true;
  template <math::product P = math::product::exact, class T>
  PIPE_HD static PIPE_INLINE T forward(T x) {
    return math::sigmoid<P>(x);
  }
  /// sigmoid(x) (1 - sigmoid(x)), from y = sigmoid(x).
  template <math::product P = math::product::exact, class T>
  PIPE_HD static PIPE_INLINE T derivative(T y) {
    return y * (T(1) - y);
  }
};

/// x * sigmoid(x), also called swish.
struct SiLU : Activation<SiLU> {
  static constexpr bool derivative_reads_output = false;
  template <math::product P = math::product::exact, class T>
  PIPE_HD static PIPE_INLINE T forward(T x) {
    return x * math::sigmoid<P>(x);
  }
  /// s (1 + x (1 - s)), s = sigmoid(x).
  template <math::product P = math::product::exact, class T>
  PIPE_HD static PIPE_INLINE T derivative(T x) {
    T const s = math::sigmoid<P>(x);
    return s * math::multiply_add<P>(x, T(1) - s, T(1));
  }
};

/// x * Phi(x) exactly, as PyTorch's nn.GELU().
struct GELU : Activation<GELU> {
  static constexpr bool derivative_reads_output = false;
  template <math::product P = math::product::exact, class T>
  PIPE_HD static PIPE_INLINE T forward(T x) {
    return T(0.5) * x * (T(1) + math::erf<P>(x * T(0.7071067811865476)));
  }
  /// Phi(x) + x * density(x), density(x) = e^(-x^2 / 2) / sqrt(2 pi).
  template <math::product P = math::product::exact, class T>
  PIPE_HD static PIPE_INLINE T derivative(T x) {
    T const twice_density = T(0.7978845608028654) * math::exp<P>(T(-0.5) * x * x);
    return T(0.5) *
           math::multiply_add<P>(x, twice_density, T(1) + math::erf<P>(x * T(0.7071067811865476)));
  }
};

/// x * Phi(x) by the tanh formula of Hendrycks and Gimpel (2016): PyTorch's
/// nn.GELU(approximate="tanh"), GPT-2's.
///
/// Phi(x) = (1 + tanh(u)) / 2 = 1 / (1 + e^-2u), u = sqrt(2 / pi) (x + 0.044715 x^3): the second
/// form needs one exponential and one division, and does not cancel where Phi is small.
struct GELUTanh : Activation<GELUTanh> {
  static constexpr bool derivative_reads_output = false;
  template <math::product P = math::product::exact, class T>
  PIPE_HD static PIPE_INLINE T forward(T x) {
    return math::quotient(x, T(1) + inverse_odds<P>(x));
  }
  /// phi (1 + x (1 - phi) * d(2u)/dx), phi = 1 / (1 + e^-2u).
  template <math::product P = math::product::exact, class T>
  PIPE_HD static PIPE_INLINE T derivative(T x) {
    T const phi = math::quotient(T(1), T(1) + inverse_odds<P>(x));
    T const slope =
        T(1.5957691216057308) * math::multiply_add<P>(T(3 * 0.044715) * x, x, T(1));  // of 2u
    return phi * math::multiply_add<P>((T(1) - phi) * x, slope, T(1));
  }

 private:
  /// e^-2u = 2^(x (a + b x^2)), a = -2 sqrt(2 / pi) / log(2), b = 0.044715 a
  template <math::product P = math::product::exact, class T>
  PIPE_HD static PIPE_INLINE T inverse_odds(T x) {
    return math::exp2<P>(
        x * math::multiply_add<P>(T(-0.1029432395800235), x * x, T(-2.302208198144325)));
  }
};

}  // namespace pp
