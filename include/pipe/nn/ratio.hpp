// SPDX-License-Identifier: BSL-1.0
//
// A type can hold no 0.1, so a real number of an option is written as a quotient of two integers: `Dropout<1, 10>`.
#pragma once

#include <pipe/base/config.hpp>
#include <pipe/graph/layer_option.hpp>

namespace pp {

/// The number Numerator / Denominator.
template <int Numerator, int Denominator>
struct ratio {
  static constexpr int numerator = Numerator, denominator = Denominator;

  static constexpr bool positive() { return Numerator > 0 && Denominator > 0; }
  static constexpr bool at_least_zero() { return Numerator >= 0 && Denominator > 0; }
  static constexpr bool at_most_one() { return at_least_zero() && Numerator <= Denominator; }

  /// The same as the number of an option.
  static constexpr option_number in(bool range) { return {range, Numerator, Denominator}; }

  /// needs: Denominator is not 0
  template <class T>
  PIPE_HD static constexpr T value() {
    return T(Numerator) / T(Denominator);
  }
};

}  // namespace pp
