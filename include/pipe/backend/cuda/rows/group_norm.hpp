// SPDX-License-Identifier: BSL-1.0
//
// Group norm: a sample's columns are in groups, and each group is normalised over all rows of the
// sample. Columns are first summed over the rows of a sample, by many blocks; a second kernel joins
// the columns of each group, and a third normalises.
#pragma once

#include <pipe/backend/cuda/core/accesses.hpp>
#include <pipe/backend/cuda/core/chain.hpp>
#include <pipe/backend/cuda/core/warp.hpp>
#include <pipe/backend/cuda/rows/column_moments.hpp>
#include <pipe/backend/cuda/rows/row_sources.hpp>
#include <pipe/base/bytes.hpp>

namespace pp::cuda {

/// Base of the kernels of this file: constants of group G, and the layout of the workspace.
template <class P, int G>
struct grouped_columns {
  using T = typename P::element;
  static constexpr int columns = group_of<P, G>::value.columns,
                       groups = group_of<P, G>::value.attributes.group().groups,
                       width = columns / groups, rows = group_of<P, G>::value.rows;
  static constexpr float epsilon = float(group_of<P, G>::value.attributes.group().epsilon);
  static constexpr extent sample_columns = extent(columns) * P::samples,
                          sample_groups = extent(groups) * P::samples;
  template <int Index>
  static constexpr int in = group_of<P, G>::value.in[Index];
  template <int Index>
  static constexpr int out = group_of<P, G>::value.out[Index];

  /// Bytes of the numbers that kernels pass on in the workspace: two for each column of each
  /// sample, and two for each group of each sample.
  static constexpr long kept_bytes =
      detail::align_up((2 * sample_columns + 2 * sample_groups) * long(sizeof(float)));
  PIPE_HD PIPE_INLINE static float* of_columns(arguments const& a, int which) {
    return static_cast<float*>(a.workspace) + which * sample_columns;
  }
  PIPE_HD PIPE_INLINE static float* of_groups(arguments const& a) {
    return static_cast<float*>(a.workspace) + 2 * sample_columns;
  }

  /// Loads, for each of Count columns of a sample, the two numbers of its group.
  template <int Count>
  PIPE_HD PIPE_INLINE static void load_pairs(float const* pairs, extent sample, int column,
                                             float (&first)[Count], float (&second)[Count]) {
    PIPE_UNROLL
    for (int i = 0; i < Count; ++i) {
      if (width % Count == 0 && i > 0) {
        first[i] = first[0], second[i] = second[0];
        continue;
      }
      float pair[2];
      load<2>(pairs + 2 * (sample * groups + (column + i) / width), pair);
      first[i] = pair[0], second[i] = pair[1];
    }
  }
};

/// The mean of each column of each sample, and the sum of squared differences from this mean: a
/// source of column_sums_kernel.
///
/// shape: x (B, R, C) -> workspace (2, B, C)
template <class P, int G>
struct group_moment_source {
  using base = grouped_columns<P, G>;
  using T = typename base::T;
  static constexpr int sums = 2;
  static constexpr extent rows = base::rows, columns = base::sample_columns,
                          together = base::columns;
  static constexpr long kept_bytes = base::kept_bytes;
  template <int Count>
  using known = near_mean<Count>;

  /// The address of an element. Columns are numbered over all samples: sample * C + channel.
  PIPE_HD PIPE_INLINE static T const* at(arguments const& a, extent row, extent column) {
    return a.at<T const>(base::template in<0>) + (column / together * rows + row) * together +
           column % together;
  }
  /// A number near the mean of each column, from which differences are summed: see near_mean.
  template <int Count>
  PIPE_HD PIPE_INLINE static void learn(arguments const& a, extent, extent column,
                                        known<Count>& first) {
    first.learn(at(a, 0, column), together, rows);
  }
  template <int Count>
  PIPE_HD PIPE_INLINE static void read(arguments const& a, extent row, extent column,
                                       known<Count> const& first, float (&terms)[2][Count]) {
    first.read(at(a, row, column), terms);
  }
  /// Writes the mean and the sum of squared differences of columns, from complete sums of terms.
  template <int Count>
  PIPE_HD PIPE_INLINE static void take(arguments const& a, extent, extent column,
                                       float const (&sum)[2][Count]) {
    known<Count> first;
    learn<Count>(a, 0, column, first);
    float mean[Count], squares[Count];
    first.take(float(rows), sum, mean, squares);
    save<Count>(base::of_columns(a, 0) + column, mean);
    save<Count>(base::of_columns(a, 1) + column, squares);
  }
};

/// Base of kernels with a warp for each group of each sample.
///
/// law:  a lane adds every 32nd column of its group in order, then the warp's lanes are added by a
///       butterfly
/// cost: bound by latency; reads a few numbers of each column
template <class P, int G>
struct group_warps : grouped_columns<P, G> {
  using base = grouped_columns<P, G>;
  static constexpr int threads = 128, warps = threads / warp_size;
  static constexpr extent blocks = (base::sample_groups + warps - 1) / warps;
  using shared = nothing;
  struct state {
    float sum[2];
  };

  /// The thread's group, numbered over all samples; in the last block it may be beyond the last
  /// group.
  template <class Block>
  PIPE_HD PIPE_INLINE static extent group(Block const& block, int thread) {
    return block.position() * warps + thread / warp_size;
  }
  /// Calls f(column) for the thread's columns of a group, numbered over all samples.
  template <class F>
  PIPE_HD PIPE_INLINE static void for_columns(extent group, int thread, F f) {
    for (int c = thread % warp_size; group < base::sample_groups && c < base::width; c += warp_size)
      f(group * base::width + c);
  }
  /// Adds sum Index over all lanes of a warp, with the result in each lane.
  template <int Index, class Block>
  PIPE_HD PIPE_INLINE static void reduce(Block& block) {
    reduce_lanes(block, [](state& mine) -> float& { return mine.sum[Index]; }, plus{});
  }
};

/// Mean and 1 / sqrt(variance + epsilon) of each group, joined from the means and squares of its
/// columns.
///
/// shape:  workspace (2, B, C) -> statistics (B, groups, 2)
/// source: Chan, Golub and LeVeque, Algorithms for computing the sample variance, 1983
template <class P, int G>
struct group_statistics_kernel : group_warps<P, G> {
  using base = group_warps<P, G>;
  using typename base::state;

  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& a) {
    block.part([&](int thread, state& mine) {
      mine.sum[0] = 0;
      base::for_columns(base::group(block, thread), thread,
                        [&](extent column) { mine.sum[0] += base::of_columns(a, 0)[column]; });
    });
    base::template reduce<0>(block);
    block.part([&](int thread, state& mine) {
      mine.sum[0] /= float(base::width);
      mine.sum[1] = 0;
      base::for_columns(base::group(block, thread), thread, [&](extent column) {
        float const off = base::of_columns(a, 0)[column] - mine.sum[0];
        mine.sum[1] += base::of_columns(a, 1)[column] + float(base::rows) * (off * off);
      });
    });
    base::template reduce<1>(block);
    block.part([&](int thread, state& mine) {
      extent const group = base::group(block, thread);
      if (thread % warp_size != 0 || group >= base::sample_groups) return;
      float const variance = mine.sum[1] / (float(base::rows) * float(base::width));
      float const statistics[2]{mine.sum[0], 1.0f / libm::sqrt(variance + base::epsilon)};
      save<2>(a.at<float>(base::template out<1>) + 2 * group, statistics);
    });
  }
};

/// Normalises every element, and scales and shifts it where gamma and beta are present.
///
/// shape: x (B, R, C), statistics (B, groups, 2), gamma (C), beta (C) -> y (B, R, C)
/// work:  a thread has one access of a row
/// cost:  one pass over x and y, bound by bytes: the second pass over x
template <class P, int G>
struct group_norm_kernel : row_accesses<P, G, group_of<P, G>::value.columns> {
  using base = row_accesses<P, G, group_of<P, G>::value.columns>;
  using of = grouped_columns<P, G>;
  using base::each;
  using T = typename of::T;

  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& a) {
    base::for_access(block, [&](extent row, int column) {
      float x[each], mean[each], rstd[each];
      load<each>(a.at<T const>(of::template in<0>) + row * of::columns + column, x);
      of::template load_pairs<each>(a.at<float const>(of::template out<1>), row / of::rows, column,
                                    mean, rstd);
      normalize_columns<T, of::template in<1>, of::template in<2>>(a, column, mean, rstd, x);
      finish<P, G, each>(a, row, column, x);
    });
  }
};

/// The sums over a sample's rows of g and of g * xhat, g = dy * gamma: a source of
/// column_sums_kernel.
///
/// shape: dy, x (B, R, C), gamma (C), statistics (B, groups, 2) -> workspace (2, B, C)
template <class P, int G>
struct group_gradient_source {
  using base = grouped_columns<P, G>;
  using T = typename base::T;
  static constexpr int sums = 2;
  static constexpr extent rows = base::rows, columns = base::sample_columns,
                          together = base::columns;
  static constexpr long kept_bytes = base::kept_bytes;
  template <int Count>
  struct known {
    float mean[Count], rstd[Count];
  };

  template <int Count>
  PIPE_HD PIPE_INLINE static void learn(arguments const& a, extent, extent column,
                                        known<Count>& by) {
    base::template load_pairs<Count>(a.at<float const>(base::template in<3>), column / together,
                                     int(column % together), by.mean, by.rstd);
  }
  template <int Count>
  PIPE_HD PIPE_INLINE static void read(arguments const& a, extent row, extent column,
                                       known<Count> const& by, float (&terms)[2][Count]) {
    extent const at = (column / together * rows + row) * together + column % together;
    float x[Count];
    load<Count>(a.at<T const>(base::template in<0>) + at, terms[0]);
    load<Count>(a.at<T const>(base::template in<1>) + at, x);
    PIPE_UNROLL
    for (int i = 0; i < Count; ++i) terms[1][i] = terms[0][i] * ((x[i] - by.mean[i]) * by.rstd[i]);
  }
  template <int Count>
  PIPE_HD PIPE_INLINE static void take(arguments const& a, extent, extent column,
                                       float const (&sum)[2][Count]) {
    float gamma[Count];
    if constexpr (base::template in<2> >= 0)
      load<Count>(a.at<T const>(base::template in<2>) + column % together, gamma);
    PIPE_UNROLL
    for (int s = 0; s < 2; ++s) {
      float v[Count];
      PIPE_UNROLL
      for (int i = 0; i < Count; ++i) {
        v[i] = sum[s][i];
        if constexpr (base::template in<2> >= 0) v[i] *= gamma[i];
      }
      save<Count>(base::of_columns(a, s) + column, v);
    }
  }
};

/// The means of g and of g * xhat in each group.
///
/// shape: workspace (2, B, C) -> workspace (B, groups, 2)
template <class P, int G>
struct group_means_kernel : group_warps<P, G> {
  using base = group_warps<P, G>;
  using typename base::state;

  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& a) {
    block.part([&](int thread, state& mine) {
      mine.sum[0] = mine.sum[1] = 0;
      base::for_columns(base::group(block, thread), thread, [&](extent column) {
        mine.sum[0] += base::of_columns(a, 0)[column];
        mine.sum[1] += base::of_columns(a, 1)[column];
      });
    });
    base::template reduce<0>(block);
    base::template reduce<1>(block);
    block.part([&](int thread, state& mine) {
      extent const group = base::group(block, thread);
      if (thread % warp_size != 0 || group >= base::sample_groups) return;
      float const all = float(base::rows) * float(base::width);
      float const means[2]{mine.sum[0] / all, mine.sum[1] / all};
      save<2>(base::of_groups(a) + 2 * group, means);
    });
  }
};

/// dx = rstd * (g - mean of g - xhat * mean of g xhat), g = dy * gamma, over the rows and columns
/// of a group.
///
/// shape: dy, x (B, R, C), gamma (C), statistics (B, groups, 2), means (B, groups, 2) -> dx (B, R,
///        C)
template <class P, int G>
struct group_norm_gradient_kernel : row_accesses<P, G, group_of<P, G>::value.columns> {
  using base = row_accesses<P, G, group_of<P, G>::value.columns>;
  using of = grouped_columns<P, G>;
  using base::each;
  using T = typename of::T;

  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& a) {
    base::for_access(block, [&](extent row, int column) {
      float g[each], x[each], mean[each], rstd[each], mean_g[each], mean_gx[each];
      extent const at = row * of::columns + column, sample = row / of::rows;
      load<each>(a.at<T const>(of::template in<0>) + at, g);
      load<each>(a.at<T const>(of::template in<1>) + at, x);
      of::template load_pairs<each>(a.at<float const>(of::template in<3>), sample, column, mean,
                                    rstd);
      of::template load_pairs<each>(of::of_groups(a), sample, column, mean_g, mean_gx);
      if constexpr (of::template in<2> >= 0) {
        float gamma[each];
        load<each>(a.at<T const>(of::template in<2>) + column, gamma);
        PIPE_UNROLL
        for (int i = 0; i < each; ++i) g[i] *= gamma[i];
      }
      PIPE_UNROLL
      for (int i = 0; i < each; ++i)
        x[i] = (g[i] - mean_g[i] - (x[i] - mean[i]) * rstd[i] * mean_gx[i]) * rstd[i];
      finish<P, G, each>(a, row, column, x);
    });
  }
};

/// The statistics of group norms for norm_parameter_source: mean and 1 / deviation of a column's
/// group; rows are numbered over all samples.
template <class P, int G>
struct group_statistics {
  template <int Count>
  PIPE_HD PIPE_INLINE static void load_at(float const* statistics, extent row, extent column,
                                          float (&mean)[Count], float (&rstd)[Count]) {
    using of = grouped_columns<P, G>;
    of::template load_pairs<Count>(statistics, row / of::rows, int(column), mean, rstd);
  }
};

template <>
struct kernel_of<op_kind::group_norm> {
  template <class P, int G>
  using list = kernel_list<column_sums_kernel<group_moment_source<P, G>>,
                           group_statistics_kernel<P, G>, group_norm_kernel<P, G>>;
};
template <>
struct kernel_of<op_kind::group_norm_gradient> {
  template <class P, int G>
  using list = kernel_list<column_sums_kernel<group_gradient_source<P, G>>,
                           group_means_kernel<P, G>, group_norm_gradient_kernel<P, G>>;
};
template <>
struct kernel_of<op_kind::group_parameter_gradient> {
  template <class P, int G>
  using list = kernel_list<column_sums_kernel<norm_parameter_source<P, G, group_statistics<P, G>>>>;
};

}  // namespace pp::cuda
