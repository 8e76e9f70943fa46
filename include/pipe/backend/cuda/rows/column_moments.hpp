// SPDX-License-Identifier: BSL-1.0
//
// Means and variances of columns in one pass. Terms are differences from a number near the mean,
// which is the mean of a few rows at equal distances, so that the variance loses few digits.
#pragma once

#include <pipe/backend/cuda/core/vectors.hpp>
#include <pipe/backend/cuda/core/arguments.hpp>

namespace pp::cuda {

/// A number near the mean of each of Count columns.
///
/// law:    the variance loses digits only by the square of (value - mean) / deviation; a number of
///         a column that is not finite makes the column's mean NaN
/// source: Chan, Golub and LeVeque, Algorithms for computing the sample variance, 1983, section 3
template <int Count>
struct near_mean {
  float value[Count];

  /// Sets the numbers, from up to four rows.
  ///
  /// shape: x (rows, stride), from the first of the columns on
  template <class T>
  PIPE_HD PIPE_INLINE void learn(T const* x, extent stride, extent rows) {
    constexpr int most = 4;
    int const some = rows < most ? int(rows) : most;
    PIPE_UNROLL
    for (int i = 0; i < Count; ++i) value[i] = 0;
    PIPE_UNROLL
    for (int k = 0; k < most; ++k) {
      if (k >= some) break;
      float of[Count];
      load<Count>(x + k * rows / some * stride, of);
      PIPE_UNROLL
      for (int i = 0; i < Count; ++i) value[i] += of[i] / float(some);
    }
  }
  /// The terms of a row: the differences and their squares.
  template <class T>
  PIPE_HD PIPE_INLINE void read(T const* x, float (&terms)[2][Count]) const {
    load<Count>(x, terms[0]);
    PIPE_UNROLL
    for (int i = 0; i < Count; ++i) {
      terms[0][i] -= value[i];
      terms[1][i] = terms[0][i] * terms[0][i];
    }
  }
  /// The mean, and the sum of squared differences from the mean, from the sums of the terms of
  /// `rows` rows.
  PIPE_HD PIPE_INLINE void take(float rows, float const (&sum)[2][Count], float (&mean)[Count],
                                float (&squares)[Count]) const {
    PIPE_UNROLL
    for (int i = 0; i < Count; ++i) {
      float const off = sum[0][i] / rows, least = sum[1][i] - sum[0][i] * off;
      mean[i] = value[i] + off;
      squares[i] = least < 0 ? 0.0f : least;
    }
  }
};

/// x = (x - mean) * rstd (* gamma) (+ beta) for columns from `column` on. Gamma, Beta: the indices
/// of these parameters, or -1.
template <class T, int Gamma, int Beta, int Count>
PIPE_HD PIPE_INLINE void normalize_columns(arguments const& a, extent column,
                                           float const (&mean)[Count], float const (&rstd)[Count],
                                           float (&x)[Count]) {
  float gamma[Count], beta[Count];
  if constexpr (Gamma >= 0) load<Count>(a.at<T const>(Gamma) + column, gamma);
  if constexpr (Beta >= 0) load<Count>(a.at<T const>(Beta) + column, beta);
  PIPE_UNROLL
  for (int i = 0; i < Count; ++i) {
    x[i] = (x[i] - mean[i]) * rstd[i];
    if constexpr (Gamma >= 0) x[i] *= gamma[i];
    if constexpr (Beta >= 0) x[i] += beta[i];
  }
}

}  // namespace pp::cuda
