// SPDX-License-Identifier: BSL-1.0
//
// The patches of an image as a matrix that is never in memory: a row for each pixel of the result,
// a column for each (tap, channel). Blocks of a convolution copy pieces of this matrix to shared
// memory, from their places in the image.
//
// With a stride, the same taps reach all pixels of dx whose coordinates have the same remainder: a
// phase. Rows of the matrix are in the order of phases, so that a block has mostly rows of one
// phase, and skips the taps that reach none of its rows: no inserted zeros are multiplied.
#pragma once

#include <pipe/backend/cuda/core/arguments.hpp>

namespace pp::cuda {

/// The attributes of group G of pipeline P, as a constant that device code may copy.
template <class P, int G>
struct convolution_of {
  static constexpr detail::convolution_attributes value =
      group_of<P, G>::value.attributes.convolution();
};

/// The position that pixel i of the result reads at a tap, along one axis; negative outside.
///
/// Transposed: the result is dx, and the source is dy
template <bool Transposed>
PIPE_HD PIPE_INLINE int position_of(detail::convolution_axis const& a, int i, int tap) {
  if constexpr (Transposed) {
    int const ahead = i + a.padding - tap * a.dilation;
    if (a.stride == 1) return ahead < a.out ? ahead : -1;
    int const at = int(unsigned(ahead) / unsigned(a.stride));
    return ahead >= 0 && at * a.stride == ahead && at < a.out ? at : -1;
  } else {
    int const at = i * a.stride - a.padding + tap * a.dilation;
    return at < a.in ? at : -1;
  }
}

/// The patches that a convolution reads or, if Transposed, that its input gradient reads.
///
/// shape: image (samples, source pixels, pitch) -> (samples * result pixels, taps * channels), of
///        the channels of a group
template <class P, int G, bool Transposed>
struct patches {
  using T = typename P::element;
  static constexpr detail::convolution_attributes of = convolution_of<P, G>::value;
  static constexpr int high = Transposed ? of.vertical.in : of.vertical.out,
                       wide = Transposed ? of.horizontal.in : of.horizontal.out;  // the result
  static constexpr int source_high = Transposed ? of.vertical.out : of.vertical.in,
                       source_wide = Transposed ? of.horizontal.out : of.horizontal.in;
  static constexpr int pitch = Transposed ? of.filters : of.channels, channels = pitch / of.groups;
  static constexpr int kernel_wide = of.horizontal.kernel, taps = of.taps();
  static constexpr extent rows = extent(high) * wide * P::samples;
  static_assert(rows < 0x7fffff00 && extent(source_high) * P::samples < 0x7fffff00);

  static constexpr int down_stride = Transposed ? of.vertical.stride : 1,
                       across_stride = Transposed ? of.horizontal.stride : 1,
                       phases = down_stride * across_stride;

  /// A row of the matrix as sample and pixel.
  struct window {
    int sample, row, column;
  };
  /// The window of a row of the result.
  PIPE_HD PIPE_INLINE static window window_at(unsigned row) {
    return {int(row / unsigned(high * wide)), int(row / unsigned(wide) % unsigned(high)),
            int(row % unsigned(wide))};
  }
  PIPE_HD PIPE_INLINE static window window_of(unsigned row) {
    if constexpr (phases == 1) {
      return window_at(row);
    } else {
      int const phase = take_phase(row);
      unsigned const across = pixels_across(phase), down = pixels_down(phase);
      return {int(row / across / down),
              int(row / across % down) * down_stride + phase / across_stride,
              int(row % across) * across_stride + phase % across_stride};
    }
  }
  /// The row of the result that is row `row` of the matrix.
  PIPE_HD PIPE_INLINE static extent row_of(extent row) {
    if constexpr (phases == 1) return row;
    window const w = window_of(unsigned(row));
    return extent(w.sample * high + w.row) * wide + w.column;
  }
  /// The phase of a row; `row` becomes the row's number in this phase.
  PIPE_HD PIPE_INLINE static int take_phase(unsigned& row) {
    int phase = 0;
    for (; phase + 1 < phases; ++phase) {
      unsigned const all = pixels_across(phase) * pixels_down(phase) * unsigned(P::samples);
      if (row < all) break;
      row -= all;
    }
    return phase;
  }
  /// Whether a tap reaches the pixels of a phase.
  PIPE_HD PIPE_INLINE static bool reaches(int tap, int phase) {
    constexpr detail::convolution_attributes by = convolution_of<P, G>::value;
    int const down = phase / across_stride + by.vertical.padding -
                     tap / kernel_wide * by.vertical.dilation,
              across = phase % across_stride + by.horizontal.padding -
                       tap % kernel_wide * by.horizontal.dilation;
    return down % down_stride == 0 && across % across_stride == 0;
  }
  /// The address that a window reads at a tap, from a channel on; null outside of the image.
  ///
  /// image: the first channel of the group in the image
  PIPE_HD PIPE_INLINE static T const* at(T const* image, window const& w, int tap, int channel) {
    constexpr detail::convolution_attributes by = convolution_of<P, G>::value;
    int const row = position_of<Transposed>(by.vertical, w.row, tap / kernel_wide),
              column = position_of<Transposed>(by.horizontal, w.column, tap % kernel_wide);
    if (row < 0 || column < 0) return nullptr;
    return image + (extent(w.sample * source_high + row) * source_wide + column) * pitch + channel;
  }

 private:
  PIPE_HD PIPE_INLINE static unsigned pixels_down(int phase) {
    return unsigned(high - phase / across_stride + down_stride - 1) / unsigned(down_stride);
  }
  PIPE_HD PIPE_INLINE static unsigned pixels_across(int phase) {
    return unsigned(wide - phase % across_stride + across_stride - 1) / unsigned(across_stride);
  }
};

}  // namespace pp::cuda
