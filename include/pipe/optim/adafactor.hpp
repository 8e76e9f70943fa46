// SPDX-License-Identifier: BSL-1.0
//
// Adafactor, as torch.optim.Adafactor: the second moment of a matrix is estimated by the product of
// a row and a column, so the state of a matrix is rows + columns numbers. Source: Shazeer and
// Stern, Adafactor, 2018; PyTorch differs from the paper in the learning rate (an upper bound of
// the relative step) and in the place of epsilon1.
#pragma once

#include <limits>

#include <pipe/base/config.hpp>
#include <pipe/base/libm.hpp>
#include <pipe/base/math.hpp>
#include <pipe/optim/optimizer.hpp>
#include <pipe/optim/setting_check.hpp>

namespace pp {

/// With b = step^beta2_decay: row += b (mean over columns of g^2 - row), column += b (mean over
/// rows of g^2 - column), v = row column' / max(mean(row), epsilon1); for a vector v += b (g^2 -
/// v). Then, with RMS the root of the mean square, u = g / sqrt(max(v, epsilon1^2)), alpha =
/// max(epsilon2, RMS(w)) * min(learning_rate, 1 / sqrt(step)), w = (1 - learning_rate *
/// weight_decay) w - alpha / max(1, RMS(u) / threshold) * u.
struct Adafactor {
  double learning_rate = 1e-2;
  /// Exponent of the step in b. If negative, averages forget more slowly from step to step.
  double beta2_decay = -0.8;
  /// 0: the distance from 1 to the next number of the parameters' type.
  double epsilon1 = 0;
  /// Lower bound of RMS(w) in alpha: a tensor of zeros still moves.
  double epsilon2 = 1e-3;
  double threshold = 1;  ///< PyTorch's d
  double weight_decay = 0;

  static constexpr char const* name = "Adafactor";
  /// throws: data_error for beta2_decay outside [-1e30, 0], threshold outside [1e-37, 1e30], or
  ///         another setting outside [0, 1e30]
  void check(setting_check const& is) const {
    if (!(beta2_decay <= 0 && beta2_decay >= -1e30))
      is.refuse("beta2_decay", beta2_decay, "a number in [-1e30, 0]");
    is.amount("epsilon1", epsilon1);
    is.amount("epsilon2", epsilon2);
    is.positive("threshold", threshold);
    is.amount("weight_decay", weight_decay);
  }
  static constexpr bool takes(tensor_kind) { return true; }
  /// A mean for each row and each column of a matrix; for a vector one number per element.
  static constexpr long state_elements(tensor_shape const& s) {
    return s.kind == tensor_kind::vector ? s.elements() : s.rows + s.columns;
  }
  template <class Backend, class T>
  static constexpr long workspace_elements(tensor_shape const& s) {
    return s.elements() + s.columns;
  }

  /// average[i] += amount * (factor * sum[i] - average[i])
  template <class T>
  struct approach_mean {
    T* average;
    T const* sum;
    T factor, amount;
    PIPE_HD PIPE_INLINE void operator()(long i) const {
      average[i] = average[i] + amount * (factor * sum[i] - average[i]);
    }
  };
  /// average[i] += amount * ((scale * g[i])^2 - average[i])
  template <class T>
  struct approach_square {
    T* average;
    T const* g;
    T scale, amount;
    PIPE_HD PIPE_INLINE void operator()(long i) const {
      T const x = scale * g[i];
      average[i] = average[i] + amount * (x * x - average[i]);
    }
  };
  /// u[i] = scale * g[i] / sqrt(max(factor * v[i], least))
  template <class T>
  struct divide_by_root {
    T const *g, *v;
    T* u;
    T scale, factor, least;
    PIPE_HD PIPE_INLINE void operator()(long i) const {
      T const square = factor * v[i];
      u[i] = scale * g[i] / math::sqrt(square < least ? least : square);
    }
  };
  /// w[i] = decay * w[i] - rate * u[i]
  template <class T>
  struct move {
    T* w;
    T const* u;
    T decay, rate;
    PIPE_HD PIPE_INLINE void operator()(long i) const { w[i] = decay * w[i] - rate * u[i]; }
  };

  /// One step on one tensor.
  ///
  /// shape: t.state: rows numbers, then columns of a matrix, or n of a vector; t.workspace: u (n),
  ///        then sums of columns (columns)
  /// law:   means and norms are in double; the factored second moment v = row column' / mean(row)
  ///        is never stored
  template <class Kernels, class T>
  PIPE_INLINE void update(Kernels k, update_context const& c, tensor_update<T> const& t) const {
    long const rows = t.shape.rows, columns = t.shape.columns, n = t.shape.elements();
    double const smallest = epsilon1 > 0 ? epsilon1 : double(std::numeric_limits<T>::epsilon());
    double const amount = libm::pow(double(c.step), beta2_decay), scale = c.gradient_scale;
    T const least = T(smallest * smallest);
    T* const u = t.workspace;
    // RMS(w), before it changes
    double const size = libm::sqrt(k.sum_of_squares(n, t.values) / double(n));
    double const bound = libm::fmin(c.learning_rate, 1 / libm::sqrt(double(c.step)));
    double const alpha = libm::fmax(epsilon2, size) * bound;
    if (t.shape.kind == tensor_kind::vector) {
      k.each(n, approach_square<T>{t.state, t.gradients, T(scale), T(amount)});
      k.each(n, divide_by_root<T>{t.gradients, t.state, u, T(scale), T(1), least});
    } else {
      // Two passes over the rows: v needs the mean of all row averages.
      T *const row = t.state, *const column = row + rows, *const sums = u + n;
      double total = 0;
      for (long r = 0; r < rows; ++r) {
        double const mean =
            scale * scale * k.sum_of_squares(columns, t.gradients + r * columns) / double(columns);
        row[r] = T(double(row[r]) + amount * (mean - double(row[r])));
        total += double(row[r]);
      }
      k.sum_squares_of_columns(t.gradients, rows, columns, sums);
      k.each(columns, approach_mean<T>{column, sums, T(scale * scale / double(rows)), T(amount)});
      double const mean = libm::fmax(total / double(rows), smallest);
      for (long r = 0; r < rows; ++r)
        k.each(columns, divide_by_root<T>{t.gradients + r * columns, column, u + r * columns,
                                          T(scale), T(double(row[r]) / mean), least});
    }
    // RMS(u) / threshold: the update is scaled down where this is above 1.
    double const excess = libm::sqrt(k.sum_of_squares(n, u) / double(n)) / threshold;
    double const decay = 1 - c.learning_rate * weight_decay * c.decay_scale;
    k.each(n, move<T>{t.values, u, T(decay), T(alpha / libm::fmax(1.0, excess))});
  }
};

}  // namespace pp
