// SPDX-License-Identifier: BSL-1.0
//
// Dropout (Srivastava et al., 2014). Its random bits are a function of an element's position, so
// they are the same under every schedule, and backward draws them again instead of storing a mask.
#pragma once

#include <cstdint>

#include <pipe/graph/builder.hpp>
#include <pipe/nn/ratio.hpp>

namespace pp {

/// In training y = 0 with probability p = Numerator / Denominator < 1, else x / (1 - p). Outside of
/// training y = x.
///
/// shape:  any -> the same
/// law:    the dropped elements are a function of (seed, step, sample of the mini-batch, number of
///         the dropout in the model, element) only
template <auto Numerator, int Denominator = 1>
struct Dropout {
  using probability = detail::ratio<Numerator, Denominator>;
  /// An element whose 32 random bits are below this number is dropped.
  static constexpr std::uint32_t drops_below =
      static_cast<std::uint32_t>((std::uint64_t(probability::numerator) << 32) / Denominator);
  /// 1 / (1 - p), the factor of the elements that are kept, so that the expected value is x.
  template <class T>
  PIPE_HD static constexpr T scale() {
    return T(Denominator) / T(Denominator - probability::numerator);
  }

  template <class Builder>
  static constexpr void describe(Builder& b) {
    bool const in_range = probability::at_least_zero() && probability::numerator < Denominator;
    if (b.needs_numbers() && b.needs_ratio(probability::in(in_range)))
      b.set(b.dropout(b.current()));
  }
};

}  // namespace pp
