// SPDX-License-Identifier: BSL-1.0
//
// Pooling from the rows of a sample to one row, and its gradient. A thread has some columns of a
// sample and goes through its rows, so that neighbouring threads access neighbouring elements, and
// a mean adds rows in order.
#pragma once

#include <pipe/backend/cuda/core/accesses.hpp>
#include <pipe/backend/cuda/core/block.hpp>
#include <pipe/backend/cuda/core/kernel_list.hpp>
#include <pipe/backend/cuda/core/vectors.hpp>

namespace pp::cuda {

/// Base of both kernels: a thread has one access of columns of a sample, and goes through the
/// sample's rows.
template <class P, int G>
struct pooled_columns : accesses<P::samples, group_of<P, G>::value.columns,
                                 access_width<typename P::element>(group_of<P, G>::value.columns)> {
  using T = typename P::element;
  static constexpr int columns = group_of<P, G>::value.columns,
                       positions = group_of<P, G>::value.attributes.pool().rows;
  static constexpr detail::pool_kind which = group_of<P, G>::value.attributes.pool().which;

  /// The rows of a sample that a pool reads: the first of them, their number, ids, number of rows
  /// that are not padding, and the row that is taken (-1 for a mean, or if all rows are padding).
  struct rows {
    extent first = 0;
    int all = positions;
    int const* ids = nullptr;
    int count = 0, chosen = -1;
    PIPE_HD PIPE_INLINE bool is_real(int t) const { return ids == nullptr || ids[t] >= 0; }
    PIPE_HD PIPE_INLINE bool takes_part(int t) const {
      return which == detail::pool_kind::mean ? is_real(t) : t == chosen;
    }
    PIPE_HD PIPE_INLINE float divisor() const {
      return which == detail::pool_kind::mean && count > 0 ? float(count) : 1.0f;
    }
  };
  PIPE_HD PIPE_INLINE static rows rows_of(arguments const& a, extent sample) {
    constexpr int index = group_of<P, G>::value.in[1];
    rows r;
    r.first = sample * positions;
    if constexpr (detail::has_segments<P>)
      if (a.segments != nullptr)
        r.first = a.segments->first_of(sample), r.all = a.segments->length_of(sample);
    if constexpr (index >= 0) r.ids = a.ids(index) + r.first;
    for (int t = 0; t < r.all; ++t) {
      if (!r.is_real(t)) continue;
      if (which == detail::pool_kind::last || (which == detail::pool_kind::first && r.count == 0))
        r.chosen = t;
      ++r.count;
    }
    return r;
  }
};

/// The first, the last or the mean of a sample's rows whose id is not -1; zeros if there is no such
/// row.
///
/// shape: x (B, S, C), ids (B, S) or none -> y (B, C)
/// law:   a mean adds rows in ascending order
template <class P, int G>
struct pool_kernel : pooled_columns<P, G> {
  using base = pooled_columns<P, G>;
  using base::columns, base::each;
  using typename base::T;

  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& a) {
    constexpr detail::group g = group_of<P, G>::value;
    constexpr int from = g.in[0], to = g.out[0];
    base::for_access(block, [&](extent sample, int column) {
      auto const rows = base::rows_of(a, sample);
      float sum[each]{};
      for (int t = 0; t < rows.all; ++t) {
        if (!rows.takes_part(t)) continue;
        float x[each];
        load<each>(a.at<T const>(from) + (rows.first + t) * columns + column, x);
        PIPE_UNROLL
        for (int i = 0; i < each; ++i) sum[i] += x[i];
      }
      PIPE_UNROLL
      for (int i = 0; i < each; ++i) sum[i] /= rows.divisor();
      save<each>(a.at<T>(to) + sample * columns + column, sum);
    });
  }
};

/// dx = dy for the row that was taken, dy / count for all rows that were averaged, 0 for all
/// others.
///
/// shape: dy (B, C), ids (B, S) or none -> dx (B, S, C)
template <class P, int G>
struct pool_gradient_kernel : pooled_columns<P, G> {
  using base = pooled_columns<P, G>;
  using base::columns, base::each;
  using typename base::T;

  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& a) {
    constexpr detail::group g = group_of<P, G>::value;
    constexpr int from = g.in[0], to = g.out[0];
    base::for_access(block, [&](extent sample, int column) {
      auto const rows = base::rows_of(a, sample);
      float dy[each];
      load<each>(a.at<T const>(from) + sample * columns + column, dy);
      PIPE_UNROLL
      for (int i = 0; i < each; ++i) dy[i] /= rows.divisor();
      float const nothing[each]{};
      for (int t = 0; t < rows.all; ++t) {
        T* const dx = a.at<T>(to) + (rows.first + t) * columns + column;
        if (rows.takes_part(t))
          save<each>(dx, dy);
        else
          save<each>(dx, nothing);
      }
    });
  }
};

template <>
struct kernel_of<op_kind::pool> : one_kernel<pool_kernel> {};

template <>
struct kernel_of<op_kind::pool_gradient> : one_kernel<pool_gradient_kernel> {};

}  // namespace pp::cuda
