// SPDX-License-Identifier: BSL-1.0
//
// Batch norm: each column is normalised over all rows of a group of samples, which is a micro-batch
// or, with SyncOver, a part of a micro-batch. Sums over rows are kernels of their own, whose blocks
// share the rows; a second kernel normalises, with the epilogue. Samples that only fill up the last
// micro-batch are in no sum.
#pragma once

#include <pipe/backend/cuda/core/accesses.hpp>
#include <pipe/backend/cuda/core/chain.hpp>
#include <pipe/backend/cuda/rows/column_moments.hpp>
#include <pipe/backend/cuda/rows/column_sums.hpp>

namespace pp::cuda {

/// Base of the kernels of this file: the attributes of group G, as constants for device code.
template <class P, int G>
struct batch_columns {
  using T = typename P::element;
  static constexpr int columns = group_of<P, G>::value.columns;
  static constexpr detail::batch_attributes attributes = group_of<P, G>::value.attributes.batch();
  static constexpr int sample_rows = attributes.rows;
  /// The number of groups of samples; the samples and rows of a group.
  static constexpr extent groups = attributes.groups(P::samples),
                          group_size = attributes.group_size(P::samples),
                          rows = sample_rows * group_size;
  template <int Index>
  static constexpr int in = group_of<P, G>::value.in[Index];
  template <int Index>
  static constexpr int out = group_of<P, G>::value.out[Index];

  /// The number of real samples, which come first, and of their rows.
  PIPE_HD PIPE_INLINE static int real_samples(arguments const& a) {
    return a.valid_samples < P::samples ? a.valid_samples : P::samples;
  }
  PIPE_HD PIPE_INLINE static extent real_rows(arguments const& a) {
    return extent(sample_rows) * real_samples(a);
  }
  /// The real rows of a group: 0 or less if there are none.
  PIPE_HD PIPE_INLINE static extent real_rows(arguments const& a, extent group) {
    extent const left = real_rows(a) - group * rows;
    return left < rows ? left : rows;
  }
  /// The group of a row.
  PIPE_HD PIPE_INLINE static extent group_of_row(extent row) {
    if constexpr (groups == 1)
      return 0;
    else
      return row / rows;
  }
  /// Calls f(group) for the groups with real samples, ascending, and for group 0.
  template <class F>
  PIPE_HD PIPE_INLINE static void for_groups(arguments const& a, F f) {
    f(0);
    if constexpr (groups > 1) {
      for (extent group = 1; group * group_size < real_samples(a); ++group) f(group);
    }
  }
};

/// The statistics of each group or, outside of training, the running statistics: mean, 1 /
/// sqrt(variance + epsilon) and variance. A source of column_sums_kernel.
///
/// shape: x (groups, rows, C), running mean (C), running variance (C) -> statistics (groups, 3, C)
/// law:   the order of sums depends on the size of groups, not on the number of real samples;
///        statistics of a group without real samples are zeros
/// cost:  one pass over x, bound by bytes; outside of training x is not read
template <class P, int G>
struct batch_statistics_source {
  using base = batch_columns<P, G>;
  using T = typename base::T;
  static constexpr int sums = 2;
  static constexpr extent rows = base::rows, columns = base::columns, groups = base::groups;
  template <int Count>
  using known = near_mean<Count>;

  /// Whether the running statistics are used: outside of training, and if is_constant.
  PIPE_HD PIPE_INLINE static bool is_running(arguments const& a) {
    return base::attributes.is_constant || !a.training;
  }
  /// The number of rows to read.
  PIPE_HD PIPE_INLINE static extent count(arguments const& a) {
    return is_running(a) ? 0 : base::real_rows(a);
  }
  template <int Count>
  PIPE_HD PIPE_INLINE static void learn(arguments const& a, extent group, extent column,
                                        known<Count>& first) {
    first.learn(a.at<T const>(base::template in<0>) + group * rows * columns + column, columns,
                base::real_rows(a, group));
  }
  template <int Count>
  PIPE_HD PIPE_INLINE static void read(arguments const& a, extent row, extent column,
                                       known<Count> const& first, float (&terms)[2][Count]) {
    first.read(a.at<T const>(base::template in<0>) + row * columns + column, terms);
  }
  /// Writes the statistics of Count columns of a group, from complete sums over all real rows.
  template <int Count>
  PIPE_HD PIPE_INLINE static void take(arguments const& a, extent group, extent column,
                                       float const (&sum)[2][Count]) {
    float mean[Count]{}, rstd[Count]{}, variance[Count]{};
    extent const real = base::real_rows(a, group);
    if (is_running(a)) {
      load<Count>(a.at<float const>(base::template in<1>) + column, mean);
      load<Count>(a.at<float const>(base::template in<2>) + column, variance);
    } else if (real > 0) {
      known<Count> first;
      learn<Count>(a, group, column, first);
      first.take(float(real), sum, mean, variance);
      PIPE_UNROLL
      for (int i = 0; i < Count; ++i) variance[i] /= float(real);
    }
    PIPE_UNROLL
    for (int i = 0; i < Count; ++i)
      if (is_running(a) || real > 0)
        rstd[i] = 1.0f / libm::sqrt(variance[i] + float(base::attributes.epsilon));
    float* const to = a.at<float>(base::template out<0>) + group * 3 * columns + column;
    save<Count>(to, mean);
    save<Count>(to + columns, rstd);
    save<Count>(to + 2 * columns, variance);
  }
};

/// Normalises every row, and scales and shifts it where gamma and beta are present.
///
/// shape: x (groups, rows, C), statistics (groups, 3, C), gamma (C), beta (C) -> y as x
/// work:  a thread has one access of a row
/// cost:  one pass over x and y, bound by bytes
template <class P, int G>
struct batch_norm_kernel : row_accesses<P, G, group_of<P, G>::value.columns> {
  using base = row_accesses<P, G, group_of<P, G>::value.columns>;
  using of = batch_columns<P, G>;
  using base::each;
  using T = typename of::T;

  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& a) {
    base::for_access(block, [&](extent row, int column) {
      float x[each], mean[each], rstd[each];
      float const* const statistics =
          a.at<float const>(of::template in<1>) + of::group_of_row(row) * 3 * of::columns + column;
      load<each>(a.at<T const>(of::template in<0>) + row * of::columns + column, x);
      load<each>(statistics, mean);
      load<each>(statistics + of::columns, rstd);
      normalize_columns<T, of::template in<2>, of::template in<3>>(a, column, mean, rstd, x);
      finish<P, G, each>(a, row, column, x);
    });
  }
};

/// The sums over all rows of a group that the gradients read: of dy * xhat and of dy. A source of
/// column_sums_kernel.
///
/// shape: dy, x (groups, rows, C), statistics (groups, 3, C) -> sums (groups, 2, C)
template <class P, int G>
struct batch_sums_source {
  using base = batch_columns<P, G>;
  using T = typename base::T;
  static constexpr int sums = 2;
  static constexpr extent rows = base::rows, columns = base::columns, groups = base::groups;
  template <int Count>
  struct known {
    float mean[Count], rstd[Count];
  };

  PIPE_HD PIPE_INLINE static extent count(arguments const& a) { return base::real_rows(a); }
  template <int Count>
  PIPE_HD PIPE_INLINE static void learn(arguments const& a, extent group, extent column,
                                        known<Count>& by) {
    float const* const statistics =
        a.at<float const>(base::template in<2>) + group * 3 * columns + column;
    load<Count>(statistics, by.mean);
    load<Count>(statistics + columns, by.rstd);
  }
  template <int Count>
  PIPE_HD PIPE_INLINE static void read(arguments const& a, extent row, extent column,
                                       known<Count> const& by, float (&terms)[2][Count]) {
    float x[Count];
    load<Count>(a.at<T const>(base::template in<0>) + row * columns + column, terms[1]);
    load<Count>(a.at<T const>(base::template in<1>) + row * columns + column, x);
    PIPE_UNROLL
    for (int i = 0; i < Count; ++i) terms[0][i] = terms[1][i] * ((x[i] - by.mean[i]) * by.rstd[i]);
  }
  template <int Count>
  PIPE_HD PIPE_INLINE static void take(arguments const& a, extent group, extent column,
                                       float const (&sum)[2][Count]) {
    float* const to = a.at<float>(base::template out<0>) + group * 2 * columns + column;
    save<Count>(to, sum[0]);
    save<Count>(to + columns, sum[1]);
  }
};

/// dx = rstd * (g - mean of g - xhat * mean of g xhat), g = dy * gamma, by column; for constant
/// statistics dx = rstd * g; 0 in rows that only fill up the micro-batch.
///
/// shape: dy, x (groups, rows, C), statistics (groups, 3, C), sums (groups, 2, C) or none,
///        gamma (C) or none -> dx as x
template <class P, int G>
struct batch_norm_gradient_kernel : row_accesses<P, G, group_of<P, G>::value.columns> {
  using base = row_accesses<P, G, group_of<P, G>::value.columns>;
  using of = batch_columns<P, G>;
  using base::each;
  using T = typename of::T;

  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& a) {
    base::for_access(block, [&](extent row, int column) {
      constexpr bool has_sums = of::template in<3> >= 0, has_gamma = of::template in<4> >= 0;
      extent const at = row * of::columns + column, group = of::group_of_row(row);
      float const* const statistics =
          a.at<float const>(of::template in<2>) + group * 3 * of::columns + column;
      float dx[each], rstd[each];
      load<each>(a.at<T const>(of::template in<0>) + at, dx);
      load<each>(statistics + of::columns, rstd);
      if constexpr (has_sums) {
        float x[each], mean[each], sum_gx[each], sum_g[each];
        float const* const sums =
            a.at<float const>(of::template in<3>) + group * 2 * of::columns + column;
        load<each>(a.at<T const>(of::template in<1>) + at, x);
        load<each>(statistics, mean);
        load<each>(sums, sum_gx);
        load<each>(sums + of::columns, sum_g);
        float const real = float(of::real_rows(a, group));
        PIPE_UNROLL
        for (int i = 0; i < each; ++i)
          dx[i] -= (sum_g[i] + (x[i] - mean[i]) * rstd[i] * sum_gx[i]) / real;
      }
      if constexpr (has_gamma) {
        float gamma[each];
        load<each>(a.at<T const>(of::template in<4>) + column, gamma);
        PIPE_UNROLL
        for (int i = 0; i < each; ++i) dx[i] *= gamma[i];
      }
      PIPE_UNROLL
      for (int i = 0; i < each; ++i) dx[i] = row < of::real_rows(a) ? dx[i] * rstd[i] : 0.0f;
      finish<P, G, each>(a, row, column, dx);
    });
  }
};

/// The gradients of gamma and beta: the sums of groups, added in order.
///
/// shape: sums (groups, 2, C) -> dgamma (C), dbeta (C); either may be absent
template <class P, int G>
struct batch_parameter_kernel : accesses<1, group_of<P, G>::value.columns,
                                         access_width<float>(group_of<P, G>::value.columns)> {
  static constexpr int columns = group_of<P, G>::value.columns;
  using base = accesses<1, columns, access_width<float>(columns)>;
  using base::each;

  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& a) {
    base::for_access(block, [&](extent, int column) {
      add<0>(a, column);
      add<1>(a, column);
    });
  }

 private:
  using of = batch_columns<P, G>;
  /// Adds sum Index of each group.
  template <int Index>
  PIPE_HD PIPE_INLINE static void add(arguments const& a, int column) {
    if constexpr (of::template out<Index> >= 0)
      of::for_groups(a, [&](extent group) {
        float sum[each];
        load<each>(a.at<float const>(of::template in<0>) + (2 * group + Index) * columns + column,
                   sum);
        add_to_sum(a.accumulate || group > 0, a.at<float>(of::template out<Index>) + column, sum);
      });
  }
};

/// The sums of the running statistics over real rows: of x - m and of (x - m)^2, where m is the
/// running mean; see commit_rule.
///
/// shape: statistics (groups, 3, C), running mean (C) -> two sums (C)
/// law:   computed from the statistics of groups, in order, not from x
template <class P, int G>
struct batch_running_kernel : accesses<1, group_of<P, G>::value.columns,
                                       access_width<float>(group_of<P, G>::value.columns)> {
  using of = batch_columns<P, G>;
  using base = accesses<1, of::columns, access_width<float>(of::columns)>;
  using base::each;

  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& a) {
    base::for_access(block, [&](extent, int column) {
      of::for_groups(a, [&](extent group) {
        float const rows = float(of::real_rows(a, group));
        float const* const statistics =
            a.at<float const>(of::template in<0>) + group * 3 * of::columns + column;
        float sum[each], squares[each], running[each];
        load<each>(statistics, sum);
        load<each>(statistics + 2 * of::columns, squares);
        load<each>(a.at<float const>(of::template in<1>) + column, running);
        PIPE_UNROLL
        for (int i = 0; i < each; ++i) {
          float const off = sum[i] - running[i];
          sum[i] = rows * off;
          squares[i] = rows * (squares[i] + off * off);
        }
        bool const accumulate = a.accumulate || group > 0;
        add_to_sum(accumulate, a.at<float>(of::template out<0>) + column, sum);
        add_to_sum(accumulate, a.at<float>(of::template out<1>) + column, squares);
      });
    });
  }
};

template <>
struct kernel_of<op_kind::batch_statistics> {
  template <class P, int G>
  using list = kernel_list<column_sums_kernel<batch_statistics_source<P, G>>>;
};
template <>
struct kernel_of<op_kind::batch_norm> : one_kernel<batch_norm_kernel> {};

template <>
struct kernel_of<op_kind::batch_sums> {
  template <class P, int G>
  using list = kernel_list<column_sums_kernel<batch_sums_source<P, G>>>;
};
template <>
struct kernel_of<op_kind::batch_norm_gradient> : one_kernel<batch_norm_gradient_kernel> {};

template <>
struct kernel_of<op_kind::batch_parameter_gradient> : one_kernel<batch_parameter_kernel> {};

template <>
struct kernel_of<op_kind::batch_running_sums> : one_kernel<batch_running_kernel> {};

}  // namespace pp::cuda
