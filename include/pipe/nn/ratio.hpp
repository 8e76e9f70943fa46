// SPDX-License-Identifier: BSL-1.0
//
// Real numbers in options, written as a quotient of two integers: `Dropout<1, 10>`. Not every
// supported compiler has template parameters of floating-point type, and 0.1 would not be exact.
#pragma once

#include <type_traits>

#include <pipe/base/config.hpp>
#include <pipe/graph/layer_option.hpp>

namespace pp {

namespace detail {

/// The number Numerator / Denominator. Both are integers: a numerator of another type,
/// `Dropout<0.1>`, is refused when the layer is described.
template <auto Numerator, int Denominator>
struct ratio {
  // Not std::integral: see tests/structure/rules.py.
  static constexpr bool of_integers = std::is_integral_v<decltype(Numerator)>;
  static constexpr int numerator = of_integers ? int(Numerator) : 0, denominator = Denominator;

  static constexpr bool positive() { return numerator > 0 && Denominator > 0; }
  static constexpr bool at_least_zero() { return numerator >= 0 && Denominator > 0; }
  static constexpr bool at_most_one() { return at_least_zero() && numerator <= Denominator; }

  /// The number of an option that must be in range; `range`: whether it is.
  static constexpr option_number in(bool range) {
    return {range && of_integers, numerator, Denominator, of_integers};
  }

  /// needs: Denominator is not 0
  template <class T>
  PIPE_HD static constexpr T value() {
    return T(numerator) / T(Denominator);
  }
};

}  // namespace detail

/// An option of LoRA, whose quotient by the rank is the factor of the low-rank terms, and of ELU,
/// whose values below zero approach -alpha: Numerator / Denominator > 0.
template <auto Numerator, int Denominator = 1>
struct Alpha : detail::ratio<Numerator, Denominator> {
  using quotient = detail::ratio<Numerator, Denominator>;
  static constexpr auto option = detail::option_kind::alpha;
  static constexpr detail::option_number number = quotient::in(quotient::positive());
  static constexpr double alpha = quotient::template value<double>();
};

}  // namespace pp
