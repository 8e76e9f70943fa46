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
#include <pipe/optim/named_states.hpp>
#include <pipe/optim/optimizer.hpp>
#include <pipe/optim/setting_check.hpp>

PIPE_OPTIMIZED_BEGIN
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
  void check(custom::setting_check const& is) const {
    if (!(beta2_decay <= 0 && beta2_decay >= -1e30))
      is.refuse("beta2_decay", beta2_decay, "a number in [-1e30, 0]");
    is.amount("epsilon1", epsilon1);
    is.amount("epsilon2", epsilon2);
    is.positive("threshold", threshold);
    is.amount("weight_decay", weight_decay);
  }
  static constexpr bool takes(custom::tensor_kind) { return true; }
  static constexpr int moments = 1, sums = 2;
  static constexpr custom::named_states states_of(custom::tensor_kind kind) {
    if (!is_factored(kind)) return {{"variance"}};
    return {{"row_average", custom::state_extent::rows},
            {"column_average", custom::state_extent::columns}};
  }
  /// A mean for each row and each column of a matrix; for a vector one number per element.
  static constexpr long state_elements(custom::tensor_shape const& s) {
    return is_factored(s.kind) ? s.rows + s.columns : s.elements();
  }
  template <class Backend, class T>
  static constexpr long workspace_elements(custom::tensor_shape const& s) {
    return s.elements() + s.columns;
  }

  // ---- one element ----

  /// `amount`: b; `least`: epsilon1^2; `bound`: min(learning_rate, 1 / sqrt(step))
  template <class T>
  struct tensor_coefficients {
    T scale, amount, least, decay;
    double smallest, bound, epsilon2, threshold;
  };
  /// law: computed in double and rounded once to T
  template <class T>
  tensor_coefficients<T> prepare_tensor(custom::update_context const& c) const {
    double const smallest = epsilon1 > 0 ? epsilon1 : double(std::numeric_limits<T>::epsilon());
    return {T(c.gradient_scale),
            T(libm::pow(double(c.step), beta2_decay)),
            T(smallest * smallest),
            T(1 - c.learning_rate * weight_decay * c.decay_scale),
            smallest,
            libm::fmin(c.learning_rate, 1 / libm::sqrt(double(c.step))),
            epsilon2,
            threshold};
  }
  /// An average follows a mean of squares.
  template <math::product P = math::product::exact, class T>
  PIPE_HD static PIPE_INLINE T approach(T amount, T average, T mean) {
    return math::multiply_add<P>(amount, mean - average, average);
  }
  /// A mean that is a product.
  template <math::product P, class T>
  PIPE_HD static PIPE_INLINE T approach(T amount, T average, T factor, T sum) {
    return math::multiply_add<P>(amount, math::multiply_add<P>(factor, sum, -average), average);
  }
  /// u.
  template <math::product P = math::product::exact, class T>
  PIPE_HD static PIPE_INLINE T direction(tensor_coefficients<T> const& k, T g, T v) {
    return k.scale * g / math::sqrt<P>(v < k.least ? k.least : v);
  }
  /// What the row averages are divided by.
  template <class T>
  PIPE_HD static double mean_of_rows(tensor_coefficients<T> const& k, double total, long rows) {
    double const mean = total / double(rows);
    return mean < k.smallest ? k.smallest : mean;
  }

  // ---- two passes: see two_pass_optimizer ----

  /// Whether v is made of averages of rows and columns, not kept.
  static constexpr bool is_factored(custom::tensor_kind kind) {
    return kind != custom::tensor_kind::vector;
  }
  /// An element of a vector.
  template <math::product P = math::product::exact, class T>
  PIPE_HD static PIPE_INLINE void gather(tensor_coefficients<T> const& k, T w, T g,
                                         double (&squares)[sums], T& v) {
    T const x = k.scale * g;
    v = approach<P>(k.amount, v, x, x);
    gather_factored<P>(k, w, g, squares, v);
  }
  /// An element of a matrix.
  template <math::product P = math::product::exact, class T>
  PIPE_HD static PIPE_INLINE void gather_factored(tensor_coefficients<T> const& k, T w, T g,
                                                  double (&squares)[sums], T v) {
    double const u = double(direction<P>(k, g, v));
    squares[0] += double(w) * double(w);
    squares[1] += u * u;
  }
  /// alpha / max(1, RMS(u) / threshold).
  template <class T>
  PIPE_HD static double factor(tensor_coefficients<T> const& k, double const (&squares)[sums],
                               long n) {
    double const size = libm::sqrt(squares[0] / double(n));
    double const excess = libm::sqrt(squares[1] / double(n)) / k.threshold;
    return (size < k.epsilon2 ? k.epsilon2 : size) * k.bound / (excess < 1 ? 1 : excess);
  }
  /// One element, of a vector or a matrix.
  template <math::product P = math::product::exact, class T>
  PIPE_HD static PIPE_INLINE T move(tensor_coefficients<T> const& k, T factor, T w, T g, T v) {
    return math::multiply_add<P>(k.decay, w, -(factor * direction<P>(k, g, v)));
  }

  // ---- a tensor on the host ----

  /// average[i] += amount * (factor * sum[i] - average[i])
  template <class T>
  struct approach_mean {
    T* average;
    T const* sum;
    T factor, amount;
    template <math::product P = math::product::exact>
    PIPE_HD PIPE_INLINE void operator()(long i) const {
      average[i] = approach<P>(amount, average[i], factor, sum[i]);
    }
  };
  /// average[i] += amount * ((scale * g[i])^2 - average[i])
  template <class T>
  struct approach_square {
    T* average;
    T const* g;
    T scale, amount;
    template <math::product P = math::product::exact>
    PIPE_HD PIPE_INLINE void operator()(long i) const {
      T const x = scale * g[i];
      average[i] = approach<P>(amount, average[i], x, x);
    }
  };
  /// u[i] = scale * g[i] / sqrt(max(factor * v[i], least))
  template <class T>
  struct divide_by_root {
    T const *g, *v;
    T* u;
    T factor;
    tensor_coefficients<T> with;
    template <math::product P = math::product::exact>
    PIPE_HD PIPE_INLINE void operator()(long i) const {
      u[i] = direction<P>(with, g[i], factor * v[i]);
    }
  };
  /// w[i] = decay * w[i] - rate * u[i]
  template <class T>
  struct move_along {
    T* w;
    T const* u;
    T decay, rate;
    template <math::product P = math::product::exact>
    PIPE_HD PIPE_INLINE void operator()(long i) const {
      w[i] = math::multiply_add<P>(decay, w[i], -(rate * u[i]));
    }
  };

  /// One step on one tensor.
  ///
  /// shape: t.state: rows numbers, then columns of a matrix, or n of a vector; t.workspace: u (n),
  ///        then sums of columns (columns)
  /// law:   means and norms are in double; the factored second moment v = row column' / mean(row)
  ///        is never stored
  template <class Kernels, class T>
  PIPE_INLINE void update(Kernels k, custom::update_context const& c,
                          custom::tensor_update<T> const& t) const {
    long const rows = t.shape.rows, columns = t.shape.columns, n = t.shape.elements();
    double const amount = libm::pow(double(c.step), beta2_decay), scale = c.gradient_scale;
    tensor_coefficients<T> const with = prepare_tensor<T>(c);
    T* const u = t.workspace;
    double squares[sums] = {k.sum_of_squares(n, t.values), 0};  // before w changes
    if (!is_factored(t.shape.kind)) {
      k.each(n, approach_square<T>{t.state, t.gradients, with.scale, with.amount});
      k.each(n, divide_by_root<T>{t.gradients, t.state, u, T(1), with});
    } else {
      // Two passes over the rows: v needs the mean of all row averages.
      T *const row = t.state, *const column = row + rows, *const of_columns = u + n;
      double total = 0;
      for (long r = 0; r < rows; ++r) {
        double const mean =
            scale * scale * k.sum_of_squares(columns, t.gradients + r * columns) / double(columns);
        row[r] = T(approach(amount, double(row[r]), mean));
        total += double(row[r]);
      }
      k.sum_squares_of_columns(t.gradients, rows, columns, of_columns);
      k.each(columns,
             approach_mean<T>{column, of_columns, T(scale * scale / double(rows)), with.amount});
      double const mean = mean_of_rows(with, total, rows);
      for (long r = 0; r < rows; ++r)
        k.each(columns, divide_by_root<T>{t.gradients + r * columns, column, u + r * columns,
                                          T(double(row[r]) / mean), with});
    }
    // RMS(u) / threshold is in the factor: the update is scaled down where it is above 1.
    squares[1] = k.sum_of_squares(n, u);
    k.each(n, move_along<T>{t.values, u, with.decay, T(factor(with, squares, n))});
  }
};

}  // namespace pp
PIPE_OPTIMIZED_END
