// SPDX-License-Identifier: BSL-1.0
//
// Concatenation of rows, slices of rows, and the transpose of each sample: copies, in the widest
// accesses that the widths allow.
#pragma once

#include <pipe/backend/cuda/core/accesses.hpp>
#include <pipe/backend/cuda/core/block.hpp>
#include <pipe/backend/cuda/core/kernel_list.hpp>
#include <pipe/backend/cuda/core/vectors.hpp>

namespace pp::cuda {

/// Base of concat_kernel and slice_kernel: rows of `columns` elements, one piece per thread.
/// Aligned: the bitwise or of the widths and offsets that a piece must divide.
template <class P, int G, int Aligned>
struct copied_rows : row_accesses<P, G, group_of<P, G>::value.columns, Aligned> {
  using T = typename P::element;
  static constexpr int columns = group_of<P, G>::value.columns;
  using base = row_accesses<P, G, columns, Aligned>;
  using piece = packed<T, base::each>;

  /// y[row, column] = *from(row, column), for every piece.
  template <class Block, class From>
  PIPE_HD PIPE_INLINE static void copy(Block& block, arguments const& a, T* y, From from) {
    base::for_access(block, a, [&](extent row, int column) {
      store(reinterpret_cast<piece*>(y + row * columns + column),
            *reinterpret_cast<piece const*>(from(row, column)));
    });
  }
};

/// Rows of x and z side by side, or x, a parameter, before each row of z.
///
/// shape: x (R, K) or (K), z (R, C - K) -> y (R, C)
/// cost:  a copy, bound by bytes
template <class P, int G>
struct concat_kernel : copied_rows<P, G, group_of<P, G>::value.attributes.concat().left> {
  static constexpr int left = group_of<P, G>::value.attributes.concat().left;
  /// Elements from one row of x to the next.
  static constexpr int apart =
      group_of<P, G>::value.attributes.concat().left_is_parameter ? 0 : left;
  using base = copied_rows<P, G, left>;
  using typename base::T;

  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& a) {
    constexpr detail::group g = group_of<P, G>::value;
    constexpr int right = g.columns - left;
    T const *const x = a.at<T const>(g.in[0]), *const z = a.at<T const>(g.in[1]);
    base::copy(block, a, a.at<T>(g.out[0]), [&](extent row, int column) {
      return column < left ? x + row * apart + column : z + row * right + (column - left);
    });
  }
};

/// Columns [First, First + C) of each row.
///
/// shape: dy (R, Width) -> dx (R, C)
/// cost:  a copy, bound by bytes
template <class P, int G, int Width = group_of<P, G>::value.attributes.slice().columns,
          int First = group_of<P, G>::value.attributes.slice().first>
struct slice_kernel : copied_rows<P, G, (Width | First)> {
  using base = copied_rows<P, G, (Width | First)>;
  using typename base::T;

  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& a) {
    constexpr detail::group g = group_of<P, G>::value;
    T const* const dy = a.at<T const>(g.in[0]) + First;
    base::copy(block, a, a.at<T>(g.out[0]),
               [&](extent row, int column) { return dy + row * Width + column; });
  }
};

/// The transpose of each sample. Neighbouring threads write neighbouring elements.
///
/// shape: x (B, C, R) -> y (B, R, C)
template <class P, int G>
struct transpose_kernel
    : accesses<extent(group_of<P, G>::value.rows) * P::samples, group_of<P, G>::value.columns, 1> {
  using T = typename P::element;
  using base =
      accesses<extent(group_of<P, G>::value.rows) * P::samples, group_of<P, G>::value.columns, 1>;

  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& a) {
    constexpr detail::group g = group_of<P, G>::value;
    constexpr int rows = g.rows, columns = g.columns;
    T const* const x = a.at<T const>(g.in[0]);
    T* const y = a.at<T>(g.out[0]);
    base::for_access(block, [&](extent row, int column) {
      y[row * columns + column] = x[(row / rows * columns + column) * rows + row % rows];
    });
  }
};

template <>
struct kernel_of<op_kind::transpose> : one_kernel<transpose_kernel> {};

template <>
struct kernel_of<op_kind::concat> : one_kernel<concat_kernel> {};

template <>
struct kernel_of<op_kind::slice> {
  template <class P, int G>
  using list = kernel_list<slice_kernel<P, G>>;
};

}  // namespace pp::cuda
