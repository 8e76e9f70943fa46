// SPDX-License-Identifier: BSL-1.0
//
// Upsampling of images and sequences: to the nearest cell, or linearly between cells.
#pragma once

#include <concepts>

#include <pipe/graph/layer_option.hpp>
#include <pipe/nn/images/resample.hpp>

namespace pp {

/// An option of linear upsampling: the outermost cells of input and result have the same position
/// (align_corners=True of PyTorch). Without it the outer edges of these cells do.
struct AlignCorners {
  static constexpr auto option = detail::option_kind::corners;
};

namespace detail {

/// Upsampling by a factor, or to an extent, along the axes.
template <int Rank, bool ByFactor, int Rows, int Columns>
struct nearest_upsampling {
  template <class Builder>
  static constexpr void describe(Builder& b) {
    resample_by<Rank>(b, axis_rule::nearest, cell_reduction::sum, ByFactor, Rows, Columns);
  }
};
template <int Rank, bool ByFactor, int Rows, int Columns, class... Options>
struct linear_upsampling {
  using options = layers<Options...>;
  static constexpr auto takes = option_kinds(option_kind::corners);
  template <class Builder>
  static constexpr void describe(Builder& b) {
    constexpr bool aligns = (std::same_as<Options, AlignCorners> || ...);
    resample_by<Rank>(b, aligns ? axis_rule::linear_corners : axis_rule::linear,
                      cell_reduction::sum, ByFactor, Rows, Columns);
  }
};

}  // namespace detail

/// Each cell Factor x Factor times.
///
/// shape: (H, W, C) -> (Factor H, Factor W, C)
template <int Factor>
struct UpsampleNearest : detail::nearest_upsampling<2, true, Factor, Factor> {};
/// Cell i of n along an axis of H cells is cell floor(i H / n) of the input, in integers: PyTorch
/// rounds H / n to fp32 first.
///
/// shape: (H, W, C) -> (Height, Width, C)
template <int Height, int Width = Height>
struct UpsampleNearestTo : detail::nearest_upsampling<2, false, Height, Width> {};
/// Each position of a sequence Factor times.
///
/// shape: (T, C) -> (Factor T, C)
template <int Factor>
struct UpsampleNearest1d : detail::nearest_upsampling<1, true, Factor, 1> {};

/// Linear interpolation along both axes. The centre of cell i of n along an axis of H cells is at
/// (i + 1/2) H / n - 1/2, or at the first or the last cell if that is outside.
///
/// shape:   (H, W, C) -> (Factor H, Factor W, C)
/// options: AlignCorners
template <int Factor, class... Options>
struct UpsampleBilinear : detail::linear_upsampling<2, true, Factor, Factor, Options...> {};
/// The same to given extents.
///
/// shape:   (H, W, C) -> (Height, Width, C)
/// options: AlignCorners
template <int Height, int Width, class... Options>
struct UpsampleBilinearTo : detail::linear_upsampling<2, false, Height, Width, Options...> {};
/// The same of a sequence.
///
/// shape:   (T, C) -> (Factor T, C)
/// options: AlignCorners
template <int Factor, class... Options>
struct UpsampleLinear1d : detail::linear_upsampling<1, true, Factor, 1, Options...> {};

}  // namespace pp
