// SPDX-License-Identifier: BSL-1.0
//
// The gradient of the slopes of PReLU, as sums of columns.
#pragma once

#include <pipe/backend/cuda/rows/row_sources.hpp>
#include <pipe/graph/slope_formula.hpp>

namespace pp::cuda {

/// The gradient of the slopes of a prelu: dslope[c] (+)= sum over rows of dy x where x is not above
/// 0. For a slope that all columns share, all elements are rows of one column.
///
/// shape: dy, x (rows, C) -> dslope (C) or (1)
template <class P, int G>
struct slope_source
    : source_rows<P, G,
                  group_of<P, G>::value.attributes.slope().is_shared ? group_of<P, G>::value.columns
                                                                     : 1> {
  using T = typename P::element;
  static constexpr int sums = 1;
  static constexpr bool is_shared = group_of<P, G>::value.attributes.slope().is_shared;
  static constexpr extent columns = is_shared ? 1 : group_of<P, G>::value.columns;
  static constexpr extent rows =
      extent(group_of<P, G>::value.rows) * P::samples * group_of<P, G>::value.columns / columns;
  template <int Index>
  static constexpr int in = group_of<P, G>::value.in[Index];
  static constexpr int out = group_of<P, G>::value.out[0];

  template <int Count>
  PIPE_HD PIPE_INLINE static void read(arguments const& a, extent row, extent column,
                                       float (&terms)[1][Count]) {
    float dy[Count], x[Count];
    load<Count>(a.at<T const>(in<0>) + row * columns + column, dy);
    load<Count>(a.at<T const>(in<1>) + row * columns + column, x);
    PIPE_UNROLL
    for (int i = 0; i < Count; ++i)
      terms[0][i] = detail::slope_formula::slope_gradient(dy[i], x[i]);
  }
  PIPE_HD static float* target(arguments const& a, int) { return a.at<float>(out); }
};

template <>
struct kernel_of<op_kind::prelu_parameter_gradient> {
  template <class P, int G>
  using list = kernel_list<column_sums_kernel<slope_source<P, G>>>;
};

}  // namespace pp::cuda
