// SPDX-License-Identifier: BSL-1.0
//
// The sources of column_sums_kernel that are rows of values: for the gradients of biases, of tables
// of positions, and of a norm's scale and shift.
#pragma once

#include <pipe/backend/cuda/core/kernel_list.hpp>
#include <pipe/backend/cuda/core/launch_rows.hpp>
#include <pipe/backend/cuda/rows/column_sums.hpp>

namespace pp::cuda {

/// A source of one matrix: elements (Rows, Columns) of operand In, summed into operand Out.
template <class Element, extent Rows, extent Columns, int In, int Out>
struct element_source {
  using T = Element;
  static constexpr int sums = 1;
  static constexpr extent rows = Rows, columns = Columns;

  template <int Count>
  PIPE_HD PIPE_INLINE static void read(arguments const& a, extent row, extent column,
                                       float (&terms)[1][Count]) {
    load<Count>(a.at<T const>(In) + row * columns + column, terms[0]);
  }
  PIPE_HD static float* target(arguments const& a, int) { return a.at<float>(Out); }
};

/// The members of a source of the rows of group G by which, with Lengths, rows have the places of
/// their planned numbers in the sum.
///
/// Each: rows of the source for each row of the group
template <class P, int G, int Each = 1, bool = launch_rows<P, G>::vary>
struct source_rows {};
template <class P, int G, int Each>
struct source_rows<P, G, Each, true> {
  using of = launch_rows<P, G>;
  PIPE_HD PIPE_INLINE static extent count(arguments const& a) { return of::planned_end(a) * Each; }
  PIPE_HD PIPE_INLINE static int each(arguments const& a) { return of::each(a); }
  PIPE_HD PIPE_INLINE static extent find(arguments const& a, extent row, int each) {
    return of::template find<Each>(a, row, each);
  }
};

/// The gradient of a bias: db[c] (+)= sum over rows of dy[row, c].
///
/// shape: dy (rows, C) -> db (C)
template <class P, int G, int In = group_of<P, G>::value.in[0],
          int Out = group_of<P, G>::value.out[0]>
struct bias_source : element_source<typename P::element, launch_rows<P, G>::planned,
                                    group_of<P, G>::value.columns, In, Out>,
                     source_rows<P, G> {};

/// The gradient of a table of positions, whose rows are columns of dy as (B, T * C). With Lengths
/// the rows are segments, which have the columns of their positions.
///
/// shape: dy (B, T, C) -> dtable (T, C)
template <class P, int G, bool = launch_rows<P, G>::vary>
struct row_bias_source
    : element_source<typename P::element, P::samples,
                     launch_rows<P, G>::of_sample * group_of<P, G>::value.columns,
                     group_of<P, G>::value.in[0], group_of<P, G>::value.out[0]> {};
template <class P, int G>
struct row_bias_source<P, G, true> : row_bias_source<P, G, false> {
  using base = row_bias_source<P, G, false>;
  using typename base::T;
  static constexpr extent width = group_of<P, G>::value.columns;

  PIPE_HD PIPE_INLINE static extent count(arguments const& a) {
    return a.segments == nullptr ? extent(base::rows) : a.segments->count;
  }
  template <int Count>
  PIPE_HD PIPE_INLINE static void read(arguments const& a, extent row, extent column,
                                       float (&terms)[1][Count]) {
    if (a.segments == nullptr) return base::template read<Count>(a, row, column, terms);
    T const* const dy =
        a.at<T const>(group_of<P, G>::value.in[0]) + extent(a.segments->first[row]) * width;
    extent const end = extent(a.segments->length(row)) * width;  // of the segment's elements
    if (width % Count == 0 && column < end) return load<Count>(dy + column, terms[0]);
    PIPE_UNROLL
    for (int i = 0; i < Count; ++i) terms[0][i] = column + i < end ? float(dy[column + i]) : 0.0f;
  }
};

/// The statistics that norms of rows store: mean and 1 / deviation of each row.
struct row_statistics {
  template <int Count>
  PIPE_HD PIPE_INLINE static void load_at(float const* statistics, extent row, extent,
                                          float (&mean)[Count], float (&rstd)[Count]) {
    float of_row[2];
    load<2>(statistics + 2 * row, of_row);
    PIPE_UNROLL
    for (int i = 0; i < Count; ++i) mean[i] = of_row[0], rstd[i] = of_row[1];
  }
};

/// The gradients of a norm's scale and shift: dgamma sums dy * xhat, xhat = (x - mean) * rstd, and
/// dbeta sums dy.
///
/// shape: dy, x (rows, C), statistics in the layout of Statistics -> dgamma, dbeta (C), either of
///        which may be absent
template <class P, int G, class Statistics = row_statistics>
struct norm_parameter_source : source_rows<P, G> {
  using T = typename P::element;
  static constexpr int gamma = group_of<P, G>::value.out[0], beta = group_of<P, G>::value.out[1];
  static constexpr int sums = (gamma >= 0) + (beta >= 0);
  static constexpr extent rows = extent(group_of<P, G>::value.rows) * P::samples;
  static constexpr extent columns = group_of<P, G>::value.columns;
  template <int Index>
  static constexpr int in = group_of<P, G>::value.in[Index];

  template <int Count>
  PIPE_HD PIPE_INLINE static void read(arguments const& a, extent row, extent column,
                                       float (&terms)[sums][Count]) {
    float dy[Count];
    load<Count>(a.at<T const>(in<0>) + row * columns + column, dy);
    if constexpr (gamma >= 0) {
      float x[Count], mean[Count], rstd[Count];
      load<Count>(a.at<T const>(in<1>) + row * columns + column, x);
      Statistics::load_at(a.at<float const>(in<2>), row, column, mean, rstd);
      PIPE_UNROLL
      for (int i = 0; i < Count; ++i) terms[0][i] = dy[i] * ((x[i] - mean[i]) * rstd[i]);
    }
    if constexpr (beta >= 0) {
      PIPE_UNROLL
      for (int i = 0; i < Count; ++i) terms[sums - 1][i] = dy[i];
    }
  }
  PIPE_HD static float* target(arguments const& a, int sum) {
    return a.at<float>(sum == 0 && gamma >= 0 ? gamma : beta);
  }
};

template <>
struct kernel_of<op_kind::bias_gradient> {
  template <class P, int G>
  using list = kernel_list<column_sums_kernel<bias_source<P, G>>>;
};

template <>
struct kernel_of<op_kind::row_bias_gradient> {
  template <class P, int G>
  using list = kernel_list<column_sums_kernel<row_bias_source<P, G>>>;
};

}  // namespace pp::cuda
