// SPDX-License-Identifier: BSL-1.0
//
// Activations that rise like x above zero and are small below: relatives of ReLU. The slope of
// PReLU is trained.
#pragma once

#include <pipe/graph/builder.hpp>
#include <pipe/nn/activation.hpp>
#include <pipe/nn/ratio.hpp>
#include <pipe/nn/with.hpp>

namespace pp {

/// An option of LeakyReLU, the slope below zero, and of PReLU, the slope with which training
/// begins: Numerator / Denominator >= 0.
template <auto Numerator, int Denominator = 1>
struct NegativeSlope : detail::ratio<Numerator, Denominator> {
  using quotient = detail::ratio<Numerator, Denominator>;
  static constexpr auto option = detail::option_kind::negative_slope;
  static constexpr detail::option_number number = quotient::in(quotient::at_least_zero());
};

/// An option of PReLU: a slope for each channel, PyTorch's num_parameters=C.
struct PerChannel {
  static constexpr auto option = detail::option_kind::per_channel;
};

namespace detail {

/// LeakyReLU with options.
template <class... Options>
struct leaky_relu_with : Activation<leaky_relu_with<Options...>> {
  using options = layers<Options...>;
  static constexpr auto takes = option_kinds(option_kind::negative_slope);
  using slope = option_or<option_kind::negative_slope, NegativeSlope<1, 100>, Options...>;
  static constexpr bool derivative_reads_output = true;
  template <math::product P = math::product::exact, class T>
  PIPE_HD static PIPE_INLINE T forward(T x) {
    return x > T(0) ? x : slope::template value<T>() * x;
  }
  /// 1 where y > 0, else s: also at x = 0, as in PyTorch.
  template <math::product P = math::product::exact, class T>
  PIPE_HD static PIPE_INLINE T derivative(T y) {
    return y > T(0) ? T(1) : slope::template value<T>();
  }
};

/// ELU with options.
template <class... Options>
struct elu_with : Activation<elu_with<Options...>> {
  using options = layers<Options...>;
  static constexpr auto takes = option_kinds(option_kind::alpha);
  using alpha = option_or<option_kind::alpha, Alpha<1>, Options...>;
  static constexpr bool derivative_reads_output = true;
  template <math::product P = math::product::exact, class T>
  PIPE_HD static PIPE_INLINE T forward(T x) {
    return x > T(0) ? x : alpha::template value<T>() * math::expm1<P>(x);
  }
  /// a e^x = y + a where y <= 0, else 1.
  template <math::product P = math::product::exact, class T>
  PIPE_HD static PIPE_INLINE T derivative(T y) {
    return y > T(0) ? T(1) : y + alpha::template value<T>();
  }
};

/// PReLU with options.
template <class... Options>
struct prelu_with {
  using options = layers<Options...>;
  static constexpr auto takes = option_kinds(option_kind::negative_slope, option_kind::per_channel);
  using start = option_or<option_kind::negative_slope, NegativeSlope<1, 4>, Options...>;
  static constexpr bool is_shared = index_of_option<option_kind::per_channel, Options...>() < 0;
  template <class Builder>
  static constexpr void describe(Builder& b) {
    if (!b.needs_numbers()) return;
    initializer const initial{distribution::constant, float(start::template value<double>())};
    operand const slope =
        b.parameter(1, is_shared ? 1 : b.current().form.columns(), initial, false, {"weight"});
    b.set(b.prelu(b.current(), slope, is_shared));
  }
};

}  // namespace detail

/// x above 0, else s x.
///
/// options: NegativeSlope, which is s (default 1/100, as PyTorch's)
struct LeakyReLU : detail::leaky_relu_with<> {
  template <class... Options>
  using with_options = detail::leaky_relu_with<Options...>;
};

/// x above 0, else a (e^x - 1).
///
/// options: Alpha, which is a (default 1, as PyTorch's)
/// source:  Clevert, Unterthiner, Hochreiter, Exponential Linear Units, 2015
struct ELU : detail::elu_with<> {
  template <class... Options>
  using with_options = detail::elu_with<Options...>;
};

/// x above 0, else s x, where s is trained: one slope for the layer or, with PerChannel, one for
/// each channel, which is the last extent here.
///
/// shape:   (..., C) -> the same; s[1] or s[C], without weight decay
/// options: NegativeSlope, with which s begins (default 1/4, as PyTorch's); PerChannel
/// law:     the gradient of s is a sum over all rows in a fixed order; at x = 0 the slope is s
/// source:  He et al., Delving Deep into Rectifiers, 2015
struct PReLU : detail::prelu_with<> {
  template <class... Options>
  using with_options = detail::prelu_with<Options...>;
};

/// log(1 + e^x), as max(x, 0) + log(1 + e^-|x|), which does not overflow.
struct Softplus : Activation<Softplus> {
  static constexpr bool derivative_reads_output = true;
  template <math::product P = math::product::exact, class T>
  PIPE_HD static PIPE_INLINE T forward(T x) {
    return (x < T(0) ? T(0) : x) + math::log1p<P>(math::exp<P>(x < T(0) ? x : -x));
  }
  /// sigmoid(x) = 1 - e^-y.
  template <math::product P = math::product::exact, class T>
  PIPE_HD static PIPE_INLINE T derivative(T y) {
    return -math::expm1<P>(-y);
  }
};

/// x tanh(log(1 + e^x)).
///
/// With w = e^-|x|, which does not overflow, the tangent is n / d: n = 1 + 2w, d = n + 2w^2 for
/// x >= 0, and n = w (w + 2), d = n + 2 below.
///
/// source: Misra, Mish, 2019
struct Mish : Activation<Mish> {
  static constexpr bool derivative_reads_output = false;
  template <math::product P = math::product::exact, class T>
  PIPE_HD static PIPE_INLINE T forward(T x) {
    T const w = math::exp<P>(x < T(0) ? x : -x), n = numerator(x, w);
    return x * math::quotient(n, n + (x < T(0) ? T(2) : T(2) * w * w));
  }
  /// t + x (1 - t^2) sigmoid(x), t = tanh(log(1 + e^x)).
  template <math::product P = math::product::exact, class T>
  PIPE_HD static PIPE_INLINE T derivative(T x) {
    T const w = math::exp<P>(x < T(0) ? x : -x);
    T const n = numerator(x, w);
    T const t = math::quotient(n, x < T(0) ? n + T(2) : math::multiply_add<P>(T(2) * w, w, n));
    T const sigmoid = math::quotient(x < T(0) ? w : T(1), T(1) + w);
    return math::multiply_add<P>(x, math::multiply_add<P>(-t, t, T(1)) * sigmoid, t);
  }

 private:
  template <class T>
  PIPE_HD static PIPE_INLINE T numerator(T x, T w) {
    return x < T(0) ? w * (w + T(2)) : T(1) + T(2) * w;
  }
};

/// x limited to [0, 6].
struct ReLU6 : Activation<ReLU6> {
  static constexpr bool derivative_reads_output = true;
  template <math::product P = math::product::exact, class T>
  PIPE_HD static PIPE_INLINE T forward(T x) {
    return x < T(0) ? T(0) : x > T(6) ? T(6) : x;  // keeps NaN
  }
  /// 1 where 0 < y < 6, else 0: also at x = 0 and x = 6, as in PyTorch.
  template <math::product P = math::product::exact, class T>
  PIPE_HD static PIPE_INLINE T derivative(T y) {
    return y > T(0) && y < T(6) ? T(1) : T(0);
  }
};

}  // namespace pp
