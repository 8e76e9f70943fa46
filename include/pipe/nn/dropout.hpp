// SPDX-License-Identifier: BSL-1.0
//
// Dropout (Srivastava et al., 2014) of elements, of channels, and of whole samples. Its random bits
// are a function of an element's position, so they are the same under every schedule, and backward
// draws them again instead of storing a mask.
#pragma once

#include <cstdint>

#include <pipe/graph/builder.hpp>
#include <pipe/nn/ratio.hpp>

namespace pp {

namespace detail {

/// A dropout as a layer, whose op reads its numbers from here.
///
/// AllRows, AllColumns: whether the elements of a column of a sample, or of a row, are dropped
/// together
template <bool AllRows, bool AllColumns, auto Numerator, int Denominator>
struct dropout {
  static constexpr bool all_rows = AllRows, all_columns = AllColumns;
  using probability = ratio<Numerator, Denominator>;
  /// An element whose 32 random bits are below this number is dropped.
  static constexpr std::uint32_t drops_below =
      static_cast<std::uint32_t>((std::uint64_t(probability::numerator) << 32) / Denominator);
  /// 1 / (1 - p), the factor of what is kept, so that the expected value is x.
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

}  // namespace detail

/// In training y = 0 with probability p = Numerator / Denominator < 1, else x / (1 - p). Outside of
/// training y = x.
///
/// shape:  any -> the same
/// law:    the dropped elements are a function of (seed, step, sample of the mini-batch, number of
///         the dropout in the model, element) only
template <auto Numerator, int Denominator = 1>
struct Dropout : detail::dropout<false, false, Numerator, Denominator> {};

/// Drops whole channels of a sample, as PyTorch's Dropout2d and Dropout1d: all cells of an image or
/// all positions of a sequence lose the same ones.
///
/// shape:  (..., C) -> the same
/// law:    the dropped channels are a function of (seed, step, sample, number of the dropout in the
///         model, channel) only
/// source: Tompson et al., Efficient object localization using convolutional networks, 2015
template <auto Numerator, int Denominator = 1>
struct Dropout2d : detail::dropout<true, false, Numerator, Denominator> {};

/// Drops whole samples: at the end of a Residual, the way around them is all that is left
/// (stochastic depth).
///
/// shape:  any -> the same
/// law:    what is dropped is a function of (seed, step, sample, number of the dropout in the
///         model) only
/// source: Huang et al., Deep networks with stochastic depth, 2016
template <auto Numerator, int Denominator = 1>
struct DropPath : detail::dropout<true, true, Numerator, Denominator> {};

}  // namespace pp
