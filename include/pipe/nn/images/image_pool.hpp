// SPDX-License-Identifier: BSL-1.0
//
// Pools over windows of an image or a sequence, and over its parts. The pools of a whole sample,
// among them the global average (MeanPool), are in nn/pool.hpp.
#pragma once

#include <concepts>

#include <pipe/nn/images/resample.hpp>
#include <pipe/nn/images/window.hpp>

namespace pp {

/// An option of pools: the number of windows is rounded up, so that the last may reach beyond the
/// input and its padding. A window that would begin beyond the input is left out.
struct CeilMode {
  static constexpr auto option = detail::option_kind::ceiling;
};
/// An option of average pools: a sum is divided by the cells of the input in its window, not by
/// those in the padding as well (count_include_pad=False of PyTorch).
struct ExcludePadding {
  static constexpr auto option = detail::option_kind::real_cells;
};

namespace detail {

/// True, or a fault: the window fits into the padded input, and the padding is at most half of it,
/// so that each window has a cell of the input.
template <int Rank, class Builder>
constexpr bool needs_window(Builder& b, window const& w) {
  sample_shape const form = b.current().form;
  for (int i = 0; i < Rank; ++i) {
    if (!b.needs_positive(w.size[i]) || !b.needs_positive(w.stride_along(i)) ||
        !b.needs_positive(w.dilation[i]) || !b.needs_not_negative(sample_shape(w.padding[i])))
      return false;
    long const reach = long(w.dilation[i]) * (w.size[i] - 1) + 1,
               room = form.extent[i] + 2L * w.padding[i];
    if (w.padding[i] > w.size[i] / 2)
      b.report(wrong::padding_must_be_at_most_half_of_the_window, sample_shape(w.size[i] / 2),
               sample_shape(w.padding[i]));
    else if (reach > room)
      b.report(wrong::window_is_larger_than_its_padded_input,
               sample_shape(int(reach < most_numbers ? reach : most_numbers)),
               sample_shape(int(room)));
  }
  return b.ok();
}

/// A pool whose windows move over one axis or two.
template <int Rank, cell_reduction Reduction, auto Size, class... Options>
struct window_pool {
  using options = layers<Options...>;
  static constexpr bool is_largest = Reduction == cell_reduction::largest;
  static constexpr auto takes =
      option_kinds(option_kind::stride, option_kind::padding, option_kind::ceiling,
                   is_largest ? option_kind::dilation : option_kind::real_cells);

  template <class Builder>
  static constexpr void describe(Builder& b) {
    constexpr bool rounds_up = (std::same_as<Options, CeilMode> || ...);
    constexpr bool excludes = (std::same_as<Options, ExcludePadding> || ...);
    window w = window_of(Size);
    (join_window<Options>(w), ...);
    if (!needs_axes<Rank>(b) || !needs_window<Rank>(b, w)) return;
    resample<Rank>(b, axis_rule::window, excludes ? cell_reduction::mean : Reduction,
                   [&](int i, int in) {
                     axis_map m{};
                     m.size = w.size[i];
                     m.stride = w.stride_along(i);
                     m.before = w.padding[i];
                     m.dilation = w.dilation[i];
                     int const spare = in + 2 * m.before - (m.dilation * (m.size - 1) + 1);
                     m.out = spare / m.stride + 1;
                     if (rounds_up && spare % m.stride > 0 && m.out * m.stride < in + m.before)
                       ++m.out;
                     return m;
                   });
  }
};

/// A pool of equal parts of one axis or two.
template <int Rank, cell_reduction Reduction, int Height, int Width>
struct adaptive_pool {
  template <class Builder>
  static constexpr void describe(Builder& b) {
    resample_by<Rank>(b, axis_rule::adaptive, Reduction, false, Height, Width);
  }
};

}  // namespace detail

/// The largest cell of each window of Size x Size cells, channel by channel, as PyTorch's. NaN is
/// larger than all numbers; padding is smaller. The gradient goes to the largest cell, the first in
/// row-major order if several are.
///
/// shape:   (H, W, C) -> (H', W', C), H' = (H + 2 padding - dilation (size - 1) - 1) / stride + 1
/// options: Stride (default: the size), Padding (at most half of the size), Dilation, CeilMode
/// needs:   Size is an int or, for a window that is not square, Axes<height, width>
/// cost:    a comparison for each cell of a window; backward finds the largest cell again
template <detail::window_extents auto Size, class... Options>
struct MaxPool2d : detail::window_pool<2, detail::cell_reduction::largest, Size, Options...> {};
/// The same of a sequence.
///
/// shape:   (T, C) -> (T', C)
/// options: Stride, Padding, Dilation, CeilMode
template <int Size, class... Options>
struct MaxPool1d : detail::window_pool<1, detail::cell_reduction::largest, Size, Options...> {};

/// The mean of each window of Size x Size cells, channel by channel, as PyTorch's: padding counts
/// as zeros, but not what a window of CeilMode reaches beyond it.
///
/// shape:   (H, W, C) -> (H', W', C), H' = (H + 2 padding - size) / stride + 1
/// options: Stride, Padding, CeilMode as for MaxPool2d, ExcludePadding
/// law:     the sum is in row-major order, then divided
template <detail::window_extents auto Size, class... Options>
struct AvgPool2d : detail::window_pool<2, detail::cell_reduction::padded_mean, Size, Options...> {};
/// The same of a sequence.
///
/// shape:   (T, C) -> (T', C)
/// options: Stride, Padding, CeilMode, ExcludePadding
template <int Size, class... Options>
struct AvgPool1d : detail::window_pool<1, detail::cell_reduction::padded_mean, Size, Options...> {};

/// The mean of each of Height x Width parts, channel by channel. Part i of n along an axis of H
/// cells is [floor(i H / n), ceil((i + 1) H / n)): parts may overlap, and may be more than cells.
///
/// shape: (H, W, C) -> (Height, Width, C)
template <int Height, int Width = Height>
struct AdaptiveAvgPool2d : detail::adaptive_pool<2, detail::cell_reduction::mean, Height, Width> {};
/// The same of a sequence.
///
/// shape: (T, C) -> (Length, C)
template <int Length>
struct AdaptiveAvgPool1d : detail::adaptive_pool<1, detail::cell_reduction::mean, Length, 1> {};
/// The largest cell of each of Height x Width parts; see AdaptiveAvgPool2d and MaxPool2d.
///
/// shape: (H, W, C) -> (Height, Width, C)
template <int Height, int Width = Height>
struct AdaptiveMaxPool2d
    : detail::adaptive_pool<2, detail::cell_reduction::largest, Height, Width> {};
/// The same of a sequence.
///
/// shape: (T, C) -> (Length, C)
template <int Length>
struct AdaptiveMaxPool1d : detail::adaptive_pool<1, detail::cell_reduction::largest, Length, 1> {};

}  // namespace pp
