// SPDX-License-Identifier: BSL-1.0
//
// Local response norm along rows, and its gradient. A thread has some columns of a row and reads
// the windows of these columns from L1.
#pragma once

#include <pipe/backend/cuda/core/accesses.hpp>
#include <pipe/backend/cuda/core/chain.hpp>
#include <pipe/backend/cuda/core/kernel_list.hpp>
#include <pipe/base/math.hpp>

namespace pp::cuda {

/// Base of both kernels: constants of group G, and the divisor.
template <class P, int G>
struct response_rows : row_accesses<P, G, group_of<P, G>::value.columns> {
  using T = typename P::element;
  static constexpr int columns = group_of<P, G>::value.columns,
                       size = group_of<P, G>::value.attributes.response().size;
  static constexpr float scale =
                             float(group_of<P, G>::value.attributes.response().scale) / float(size),
                         power = float(group_of<P, G>::value.attributes.response().power),
                         offset = float(group_of<P, G>::value.attributes.response().offset);
  /// The number of a window's columns before and after the column itself.
  static constexpr int before = size / 2, after = (size - 1) / 2;

  /// d = offset + scale * the sum of x^2 over the window of a column.
  PIPE_HD PIPE_INLINE static float divisor(T const* x, int column) {
    float sum = 0;
    for (int k = 0; k < size; ++k) {
      int const j = column - before + k;
      float const v = j >= 0 && j < columns ? float(x[j]) : 0.0f;
      sum += v * v;
    }
    return offset + scale * sum;
  }
  PIPE_HD PIPE_INLINE static float factor(float d) { return math::exp(-power * math::log(d)); }
};

/// y = x d^-power, with d as response_rows::divisor.
///
/// shape:  x (rows, C) -> y (rows, C)
/// law:    a window adds its columns in ascending order
/// work:   a thread has one access of a row
/// cost:   `size` reads from L1 for each column
/// source: Krizhevsky et al., ImageNet Classification with Deep CNNs, 2012, section 3.3
template <class P, int G>
struct response_norm_kernel : response_rows<P, G> {
  using base = response_rows<P, G>;
  using base::columns, base::each;
  using typename base::T;

  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& a) {
    constexpr int from = group_of<P, G>::value.in[0];
    base::for_access(block, [&](extent row, int column) {
      T const* const x = a.at<T const>(from) + row * columns;
      float y[each];
      load<each>(x + column, y);
      PIPE_UNROLL
      for (int i = 0; i < each; ++i) y[i] *= base::factor(base::divisor(x, column + i));
      finish<P, G, each>(a, row, column, y);
    });
  }
};

/// dx[i] = dy[i] d[i]^-power - 2 scale power x[i] * the sum of dy[j] x[j] d[j]^(-power - 1) over
/// all j whose window has i.
///
/// shape: dy, x (rows, C) -> dx (rows, C)
/// cost:  size * (size + columns of an access) reads from L1 for each access
template <class P, int G>
struct response_norm_gradient_kernel : response_rows<P, G> {
  using base = response_rows<P, G>;
  using base::columns, base::each, base::before, base::after;
  using typename base::T;

  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& a) {
    constexpr int gradient = group_of<P, G>::value.in[0], from = group_of<P, G>::value.in[1];
    base::for_access(block, [&](extent row, int column) {
      T const *const dy = a.at<T const>(gradient) + row * columns, *const x = a.at<T const>(from) +
                                                                              row * columns;
      float own[each], others[each]{}, v[each];
      load<each>(dy + column, own);
      load<each>(x + column, v);
      for (int k = 0; k < each + base::size - 1; ++k) {
        int const j = column - after + k;
        if (j < 0 || j >= columns) continue;
        float const d = base::divisor(x, j), by = base::factor(d),
                    term = float(dy[j]) * float(x[j]) * by / d;
        PIPE_UNROLL
        for (int i = 0; i < each; ++i) {
          int const c = column + i;
          if (j >= c - after && j <= c + before) others[i] += term;
          if (j == c) own[i] *= by;
        }
      }
      PIPE_UNROLL
      for (int i = 0; i < each; ++i)
        v[i] = own[i] - 2.0f * base::scale * base::power * v[i] * others[i];
      finish<P, G, each>(a, row, column, v);
    });
  }
};

template <>
struct kernel_of<op_kind::response_norm> : one_kernel<response_norm_kernel> {};

template <>
struct kernel_of<op_kind::response_norm_gradient> : one_kernel<response_norm_gradient_kernel> {};

}  // namespace pp::cuda
