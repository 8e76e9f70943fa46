// SPDX-License-Identifier: BSL-1.0
//
// Resampling of images and its gradient: pools, upsampling and padding. A thread has some channels
// of one cell, of y or of dx. In the gradient a thread adds the gradients of the results that read
// its cell, so that no two threads write to one place; for a maximum it searches the windows of
// these results for their largest cells again.
#pragma once

#include <pipe/backend/cuda/core/accesses.hpp>
#include <pipe/backend/cuda/core/block.hpp>
#include <pipe/backend/cuda/core/kernel_list.hpp>
#include <pipe/backend/cuda/core/vectors.hpp>

namespace pp::cuda {

/// The attributes of group G of pipeline P, as a constant that device code may copy.
template <class P, int G>
struct resample_of {
  static constexpr detail::resample_attributes value = group_of<P, G>::value.attributes.resample();
};

/// A running maximum of cells, for some channels: NaN is larger than all numbers, and of equal
/// cells the first is kept.
template <int Each>
struct largest_cell {
  float value[Each];
  int number[Each];

  PIPE_HD PIPE_INLINE void take(int cell, float const (&x)[Each]) {
    PIPE_UNROLL
    for (int i = 0; i < Each; ++i) {
      bool const is_larger = cell == 0 || x[i] > value[i] || x[i] != x[i];
      value[i] = is_larger ? x[i] : value[i];
      number[i] = is_larger ? cell : number[i];
    }
  }
};

/// Calls f(number, row, column, weight) for the cells that a result reads, row by row.
template <class F>
PIPE_HD PIPE_INLINE void for_cells(detail::axis_cells const& rows,
                                   detail::axis_cells const& columns, F f) {
  for (int u = 0; u < rows.count; ++u)
    for (int v = 0; v < columns.count; ++v)
      f(u * columns.count + v, rows.first + u * rows.stride, columns.first + v * columns.stride,
        rows.template weight<float>(u) * columns.template weight<float>(v));
}

/// The cells of an image from the cells of another.
///
/// shape: x (B, H, W, C) -> y (B, H', W', C)
/// law:   a sum adds its cells in row-major order
template <class P, int G>
struct resample_kernel : row_accesses<P, G, group_of<P, G>::value.columns> {
  using base = row_accesses<P, G, group_of<P, G>::value.columns>;
  using base::each;
  using T = typename P::element;

  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& a) {
    constexpr detail::group g = group_of<P, G>::value;
    constexpr int from = g.in[0], to = g.out[0], columns = g.columns;
    base::for_access(block, [&](extent cell, int channel) {
      constexpr detail::resample_attributes by = resample_of<P, G>::value;
      constexpr bool is_largest = by.reduction == detail::cell_reduction::largest;
      int const column = int(cell % by.axis[1].out),
                row = int(cell / by.axis[1].out) % by.axis[0].out;
      T const* const image = a.at<T const>(from) + cell / (by.axis[0].out * by.axis[1].out) *
                                                       by.axis[0].in * by.axis[1].in * columns;
      detail::axis_cells const down = by.rows_of(row), across = by.columns_of(column);
      largest_cell<each> largest{};
      float sum[each]{};
      for_cells(down, across, [&](int number, int r, int c, float weight) {
        float x[each];
        load<each>(image + (extent(r) * by.axis[1].in + c) * columns + channel, x);
        if constexpr (is_largest) {
          largest.take(number, x);
        } else {
          PIPE_UNROLL
          for (int i = 0; i < each; ++i) sum[i] += weight * x[i];
        }
      });
      PIPE_UNROLL
      for (int i = 0; i < each; ++i)
        sum[i] = !is_largest                      ? sum[i] / float(by.divisor(down, across))
                 : down.count * across.count == 0 ? -__builtin_huge_valf()
                                                  : largest.value[i];
      save<each>(a.at<T>(to) + cell * columns + channel, sum);
    });
  }
};

/// The gradient of a resampling.
///
/// shape: dy (B, H', W', C), for a maximum also x (B, H, W, C) -> dx (B, H, W, C)
/// law:   a cell adds the gradients of the results that read it in row-major order
template <class P, int G>
struct resample_gradient_kernel : row_accesses<P, G, group_of<P, G>::value.columns> {
  using base = row_accesses<P, G, group_of<P, G>::value.columns>;
  using base::each;
  using T = typename P::element;

  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& a) {
    constexpr detail::group g = group_of<P, G>::value;
    constexpr int from = g.in[0], read = g.in[1], to = g.out[0], columns = g.columns;
    base::for_access(block, [&](extent cell, int channel) {
      constexpr detail::resample_attributes by = resample_of<P, G>::value;
      constexpr int width = by.axis[1].in, image_cells = by.axis[0].in * width;
      int const column = int(cell % width), row = int(cell / width) % by.axis[0].in;
      extent const sample = cell / image_cells;
      detail::axis_cells const rows = by.axis[0].readers_of(by.rule, row),
                               across = by.axis[1].readers_of(by.rule, column);
      float dx[each]{};
      for_cells(rows, across, [&](int, int i, int j, float) {
        detail::axis_cells const down_cells = by.rows_of(i), across_cells = by.columns_of(j);
        int const u = down_cells.number_of(row), v = across_cells.number_of(column);
        if (u < 0 || v < 0) return;
        float dy[each];
        load<each>(a.at<T const>(from) +
                       ((sample * by.axis[0].out + i) * by.axis[1].out + j) * columns + channel,
                   dy);
        if constexpr (read >= 0) {
          T const* const image = a.at<T const>(read) + sample * image_cells * columns + channel;
          largest_cell<each> largest{};
          for_cells(down_cells, across_cells, [&](int number, int r, int c, float) {
            float x[each];
            load<each>(image + (extent(r) * width + c) * columns, x);
            largest.take(number, x);
          });
          PIPE_UNROLL
          for (int k = 0; k < each; ++k)
            dx[k] += largest.number[k] == u * across_cells.count + v ? dy[k] : 0.0f;
        } else {
          float const weight = down_cells.template weight<float>(u) *
                               across_cells.template weight<float>(v) /
                               float(by.divisor(down_cells, across_cells));
          PIPE_UNROLL
          for (int k = 0; k < each; ++k) dx[k] += weight * dy[k];
        }
      });
      save<each>(a.at<T>(to) + cell * columns + channel, dx);
    });
  }
};

template <>
struct kernel_of<op_kind::resample> : one_kernel<resample_kernel> {};

template <>
struct kernel_of<op_kind::resample_gradient> : one_kernel<resample_gradient_kernel> {};

}  // namespace pp::cuda
