// SPDX-License-Identifier: BSL-1.0
//
// Depthwise convolutions: each filter reads one channel, so there is no product of matrices. A
// thread has some channels of one pixel and adds up the pixel's window; bytes bound the speed.
#pragma once

#include <pipe/backend/cuda/convolution/patches.hpp>
#include <pipe/backend/cuda/core/accesses.hpp>
#include <pipe/backend/cuda/core/chain.hpp>
#include <pipe/backend/cuda/rows/row_sources.hpp>

namespace pp::cuda {

/// y = epilogue(conv(x, w)), or dx = epilogue(the input gradient of dy).
///
/// shape: x (B, H, W, C), w (kh, kw, C) -> y (B, Y, X, C)
/// law:   taps in ascending order
/// work:  a thread has one access of a pixel's channels; neighbouring threads have neighbouring
///        channels
/// cost:  a pixel is read from memory once, and again from L2 or L1 by each tap
template <class P, int G>
struct depthwise_kernel : row_accesses<P, G, group_of<P, G>::value.columns> {
  using base = row_accesses<P, G, group_of<P, G>::value.columns>;
  using base::each;
  using T = typename P::element;
  using image = patches<P, G, group_of<P, G>::value.anchor == op_kind::convolution_input_gradient>;

  /// Every thread computes its elements alone, without shared memory.
  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& a) {
    constexpr detail::group g = group_of<P, G>::value;
    constexpr int from = g.in[0], weight = g.in[1], columns = g.columns;
    base::for_access(block, [&](extent row, int channel) {
      auto const window = image::window_at(unsigned(row));
      float y[each]{};
      for (int tap = 0; tap < image::taps; ++tap) {
        T const* const at = image::at(a.at<T const>(from), window, tap, channel);
        if (at == nullptr) continue;
        float x[each], w[each];
        load<each>(at, x);
        load<each>(a.at<T const>(weight) + tap * columns + channel, w);
        PIPE_UNROLL
        for (int i = 0; i < each; ++i) y[i] += x[i] * w[i];
      }
      finish<P, G, each>(a, row, channel, y);
    });
  }
};

/// The gradient of a depthwise weight, as sums of columns over pixels of dy: a source of
/// column_sums_kernel.
///
/// shape: x (B, H, W, C), dy (B, Y, X, C) -> dw (taps, C)
template <class P, int G>
struct depthwise_weight_source {
  using T = typename P::element;
  using image = patches<P, G, false>;
  static constexpr int sums = 1;
  static constexpr extent rows = image::rows, together = image::pitch,
                          columns = together * image::taps;

  /// x dy of Count channels of one pixel of dy and one tap; 0 if the tap is outside of x.
  template <int Count>
  PIPE_HD PIPE_INLINE static void read(arguments const& a, extent row, extent column,
                                       float (&terms)[1][Count]) {
    constexpr int from = group_of<P, G>::value.in[0], gradient = group_of<P, G>::value.in[1];
    int const tap = int(column) / image::pitch, channel = int(column) % image::pitch;
    T const* const at =
        image::at(a.at<T const>(from), image::window_at(unsigned(row)), tap, channel);
    float x[Count]{}, dy[Count];
    if (at != nullptr) load<Count>(at, x);
    load<Count>(a.at<T const>(gradient) + row * together + channel, dy);
    PIPE_UNROLL
    for (int i = 0; i < Count; ++i) terms[0][i] = at != nullptr ? x[i] * dy[i] : 0.0f;
  }
  /// (taps, C), always in float.
  PIPE_HD static float* target(arguments const& a, int) {
    constexpr int to = group_of<P, G>::value.out[0];
    return a.at<float>(to);
  }
};

/// The kernels of a depthwise weight's gradient, and of the bias's gradient if the group has a
/// prologue.
template <class P, int G>
constexpr auto lower_depthwise_weight() {
  using weight = column_sums_kernel<depthwise_weight_source<P, G>>;
  if constexpr (group_of<P, G>::value.prologue.size() > 0) {
    using T = typename P::element;
    constexpr extent rows = extent(group_of<P, G>::value.rows) * P::samples;
    constexpr int columns = group_of<P, G>::value.columns, from = group_of<P, G>::value.in[1],
                  to = group_of<P, G>::value.prologue.items[0].store;
    return kernel_list<weight, column_sums_kernel<element_source<T, rows, columns, from, to>>>{};
  } else {
    return kernel_list<weight>{};
  }
}

}  // namespace pp::cuda
