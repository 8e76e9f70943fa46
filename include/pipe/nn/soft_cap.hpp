// SPDX-License-Identifier: BSL-1.0
//
// Limits on logits: smooth, as a layer or of the scores of an attention, and by clipping.
#pragma once

#include <pipe/nn/activation.hpp>
#include <pipe/nn/ratio.hpp>

namespace pp {

/// y = c tanh(x / c) with c = Numerator/Denominator > 0, so |y| < c: a layer, as before a loss, or
/// an option of attentions, whose scaled scores it limits.
///
/// source: Gemma 2, 2024, section 2 (c = 30 of logits, 50 of scores)
template <auto Numerator, int Denominator = 1>
struct SoftCap : Activation<SoftCap<Numerator, Denominator>> {
  using quotient = detail::ratio<Numerator, Denominator>;
  static constexpr auto option = detail::option_kind::cap;
  static constexpr detail::option_number number = quotient::in(quotient::positive());
  static constexpr bool derivative_reads_output = true;

  template <class Builder>
  static constexpr void describe(Builder& b) {
    if (b.needs_ratio(number)) Activation<SoftCap>::describe(b);
  }
  template <math::product P = math::product::exact, class T>
  PIPE_HD static PIPE_INLINE T forward(T x) {
    return quotient::template value<T>() * math::tanh<P>(x / quotient::template value<T>());
  }
  /// 1 - (y / c)^2
  template <math::product P = math::product::exact, class T>
  PIPE_HD static PIPE_INLINE T derivative(T y) {
    T const t = y / quotient::template value<T>();
    return math::multiply_add<P>(-t, t, T(1));
  }
};

/// y = x clipped to [-c, c], c = Numerator/Denominator > 0. The gradient is 0 where x is outside.
/// As GPipe clips the logits of deep models, before the softmax.
///
/// source: Huang et al., GPipe, 2019, section 5
template <auto Numerator, int Denominator = 1>
struct ClipLogits : Activation<ClipLogits<Numerator, Denominator>> {
  using quotient = detail::ratio<Numerator, Denominator>;
  static constexpr detail::option_number number = quotient::in(quotient::positive());
  static constexpr bool derivative_reads_output = false;

  template <class Builder>
  static constexpr void describe(Builder& b) {
    if (b.needs_ratio(number)) Activation<ClipLogits>::describe(b);
  }
  template <math::product P = math::product::exact, class T>
  PIPE_HD static PIPE_INLINE T forward(T x) {
    return math::clamped(x, quotient::template value<T>());
  }
  /// 1 where |x| <= c, else 0: as in PyTorch.
  template <math::product P = math::product::exact, class T>
  PIPE_HD static PIPE_INLINE T derivative(T x) {
    constexpr T c = quotient::template value<T>();
    return x > c || x < -c ? T(0) : T(1);
  }
};

}  // namespace pp
