// SPDX-License-Identifier: BSL-1.0
//
// The loss of a variational autoencoder's code, a formula of a row without labels.
#pragma once

#include <pipe/pipe.hpp>

using namespace pp;

// [divergence]
/// The Kullback-Leibler divergence of N(mean, e^log_variance) from N(0, 1): the output has the
/// means in its first half and the log variances in its second half, and there are no labels.
struct Divergence : RowLoss<Divergence> {
  static constexpr int labels = 0;
  template <class T>
  PIPE_HD static PIPE_INLINE T value(custom::row<T const> x, custom::row<T const>) {
    T sum = 0;
    int const half = x.size / 2;
    for (int i = 0; i < half; ++i)
      sum += (x[i] * x[i] + (math::exp(x[half + i]) - x[half + i] - T(1))) / T(2);
    return sum;
  }
  template <class T>
  PIPE_HD static PIPE_INLINE void slopes(custom::row<T const> x, custom::row<T const>,
                                         custom::row<T> to) {
    int const half = x.size / 2;
    for (int i = 0; i < half; ++i) {
      to[i] = x[i];
      to[half + i] = (math::exp(x[half + i]) - T(1)) / T(2);
    }
  }
};
// [/divergence]
