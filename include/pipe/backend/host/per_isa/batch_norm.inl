// SPDX-License-Identifier: BSL-1.0
//
// The functions that the loops of batch_norm_loops.hpp call: statistics and sums of columns, and
// the norm and its gradient of a single row.

/// The rows of a block. Sums of blocks are added in turn: a single sum of a hundred thousand rows
/// would lose digits.
inline constexpr extent batch_block = 256;

/// A term of column_sums whose row 0 is row `first` of `term`.
template <class Term>
struct later_rows {
  Term term;
  extent first;
  template <class V>
  [[gnu::always_inline]] void vector(V* sum, extent r, extent c) const {
    term.vector(sum, first + r, c);
  }
  template <class T>
  [[gnu::always_inline]] void scalar(T* sum, extent r, extent c) const {
    term.scalar(sum, first + r, c);
  }
};
/// Sums over rows like column_sums, in blocks of rows.
///
/// law: the order of additions depends on the number of rows only
template <int Sums, bool Whole, class T, class Term>
void block_sums(extent rows, extent columns, Term const& term, T* const (&out)[Sums]) {
  for (extent r = 0; r < rows; r += batch_block)
    column_sums<Sums, Whole, T>(rows - r < batch_block ? rows - r : batch_block, columns,
                                later_rows<Term>{term, r}, out, r > 0);
}

/// x - mean and its square, with a mean per column
template <class T, class V = T>
struct difference_term {
  V const* x;
  T const* mean;
  extent stride;
  [[gnu::always_inline]] void vector(vec<T>* sum, extent r, extent c) const {
    vec<T> const d = load(x + r * stride + c) - load(mean + c);
    sum[0] += d;
    sum[1] = multiply_add(d, d, sum[1]);
  }
  [[gnu::always_inline]] void scalar(T* sum, extent r, extent c) const {
    T const d = T(x[r * stride + c]) - mean[c];
    sum[0] += d;
    sum[1] = multiply_add(d, d, sum[1]);
  }
};
/// dy * xhat and dy, xhat = (x - mean) * rstd with statistics per column
template <class T, class V = T>
struct batch_term {
  V const *dy, *x;
  T const *mean, *rstd;
  extent stride;
  [[gnu::always_inline]] void vector(vec<T>* sum, extent r, extent c) const {
    vec<T> const d = load(dy + r * stride + c);
    vec<T> const xhat = (load(x + r * stride + c) - load(mean + c)) * load(rstd + c);
    sum[0] = multiply_add(d, xhat, sum[0]);
    sum[1] += d;
  }
  [[gnu::always_inline]] void scalar(T* sum, extent r, extent c) const {
    T const d = T(dy[r * stride + c]);
    sum[0] = multiply_add(d, (T(x[r * stride + c]) - mean[c]) * rstd[c], sum[0]);
    sum[1] += d;
  }
};

/// Mean, 1 / sqrt(variance + epsilon) and variance of the columns in `own`.
///
/// shape: x (rows, n) -> statistics (3, n)
/// law:   two passes; the second sums differences from the mean of the first, and corrects this
///        mean; rows ascending
template <class T, bool Whole, class V = T>
PIPE_ONE_COPY void batch_statistics(extent rows, int n, part_range own, T epsilon, V const* x,
                                    T* statistics) {
  T *const mean = statistics, *const rstd = statistics + n, *const variance = statistics + 2 * n;
  extent const from = own.begin;
  block_sums<1, Whole, T>(rows, own.size(), element_term<T, V>{x + from, n}, {mean + from});
  for (extent c = from; c < own.end; ++c) mean[c] /= T(rows);
  block_sums<2, Whole, T>(rows, own.size(), difference_term<T, V>{x + from, mean + from, n},
                          {rstd + from, variance + from});
  for (extent c = from; c < own.end; ++c) {
    T const off = rstd[c] / T(rows), square = variance[c] / T(rows);
    mean[c] += off;
    T const least = multiply_add(-off, off, square);
    variance[c] = least < T(0) ? T(0) : least;
    rstd[c] = reciprocal_sqrt(variance[c] + epsilon);
  }
}

/// y = (x - mean) * rstd (* gamma) (+ beta), by column.
///
/// shape: x (n), statistics (2, n) or more, gamma (n) or null, beta (n) or null -> y (n)
template <class T, bool Whole, class V = T>
PIPE_ONE_COPY void batch_norm_row(int n, V const* x, T const* statistics, V const* gamma,
                                  V const* beta, T* y) {
  T const *const mean = statistics, *const rstd = statistics + n;
  int i = 0;
  for (; i + lanes<T> <= n; i += lanes<T>) {
    vec<T> v = (load(x + i) - load(mean + i)) * load(rstd + i);
    if (gamma != nullptr) v *= load(gamma + i);
    if (beta != nullptr) v += load(beta + i);
    save(y + i, v);
  }
  if constexpr (!Whole) {
    for (; i < n; ++i) {
      T v = (T(x[i]) - mean[i]) * rstd[i];
      if (gamma != nullptr) v *= T(gamma[i]);
      y[i] = beta != nullptr ? v + T(beta[i]) : v;
    }
  }
}

/// dx = rstd * (g - mean of g - xhat * mean of g xhat), g = dy * gamma, by column; for constant
/// statistics dx = rstd * g.
///
/// shape: dy, x (n), statistics (2, n), gamma (n) or null, means (2, n) of g xhat and g, or null
///        for constant statistics -> dx (n)
template <class T, bool Whole, class V = T>
PIPE_ONE_COPY void batch_norm_gradient_row(int n, V const* dy, V const* x, T const* statistics,
                                           V const* gamma, T const* means, T* dx) {
  T const *const mean = statistics, *const rstd = statistics + n;
  int i = 0;
  for (; i + lanes<T> <= n; i += lanes<T>) {
    vec<T> d = load(dy + i);
    vec<T> const r = load(rstd + i);
    if (gamma != nullptr) d *= load(gamma + i);
    if (means != nullptr)
      d -= multiply_add((load(x + i) - load(mean + i)) * r, load(means + i), load(means + n + i));
    save(dx + i, d * r);
  }
  if constexpr (!Whole) {
    for (; i < n; ++i) {
      T d = T(dy[i]);
      if (gamma != nullptr) d *= T(gamma[i]);
      if (means != nullptr)
        d -= multiply_add((T(x[i]) - mean[i]) * rstd[i], means[i], means[n + i]);
      dx[i] = d * rstd[i];
    }
  }
}

/// The function of batch_set::sums.
template <class T, bool Whole, class V = T>
PIPE_ONE_COPY void batch_gradient_sums(extent rows, extent columns, int n, V const* dy, V const* x,
                                       T const* statistics, T* sums) {
  block_sums<2, Whole, T>(rows, columns, batch_term<T, V>{dy, x, statistics, statistics + n, n},
                          {sums, sums + n});
}
template <class T, bool Whole, class V>
inline constexpr batch_set<T, V> batch_functions{
    &batch_statistics<T, Whole, V>, &batch_norm_row<T, Whole, V>, &batch_gradient_sums<T, Whole, V>,
    &batch_norm_gradient_row<T, Whole, V>};

/// The statistics of each group or, outside of training, the running statistics. Groups without a
/// real sample have zeros, so that their rows are finite.
///
/// shape: x (rows, C), running mean (C), running variance (C) -> statistics (groups, 3, C)
/// work:  a part computes whole columns, in cache lines, so the number of parts changes no bit
template <>
struct kernel_of<op_kind::batch_statistics> : batch_facts {
  template <class P, int G>
  static void run(arguments<typename P::element> const& a) {
    using k = group_rows<P, G>;
    host::batch_statistics(batch_functions<typename k::T, k::whole, typename k::V>, a,
                           group_in<P, G>, P::samples);
  }
};
/// Normalises every row, and scales and shifts it where gamma and beta are present.
///
/// shape: x (rows, C), statistics (groups, 3, C), gamma (C), beta (C) -> y (rows, C)
/// work:  parts own rows
template <>
struct kernel_of<op_kind::batch_norm> : row_facts {
  template <class P, int G>
  static void run(arguments<typename P::element> const& a) {
    using k = group_rows<P, G>;
    host::batch_norm(batch_functions<typename k::T, k::whole, typename k::V>, a, group_in<P, G>,
                     P::samples, finish_of<P, G>());
  }
};
/// The sums over all rows of a group that the gradients read: of dy * xhat and of dy.
///
/// shape: dy, x (rows, C), statistics (groups, 3, C) -> sums (groups, 2, C)
/// work:  a part computes whole columns
template <>
struct kernel_of<op_kind::batch_sums> : batch_facts {
  template <class P, int G>
  static void run(arguments<typename P::element> const& a) {
    using k = group_rows<P, G>;
    host::batch_sums(batch_functions<typename k::T, k::whole, typename k::V>, a, group_in<P, G>,
                     P::samples);
  }
};
/// The gradient by the input of a batch norm. It is 0 in rows that only fill up the micro-batch:
/// they are in no statistic, and dy is 0 there.
///
/// shape: dy, x (rows, C), statistics (groups, 3, C), sums (groups, 2, C), gamma (C)
///        -> dx (rows, C)
/// work:  parts own rows
template <>
struct kernel_of<op_kind::batch_norm_gradient> : column_facts {
  template <class P, int G>
  static void run(arguments<typename P::element> const& a) {
    using k = group_rows<P, G>;
    host::batch_norm_gradient(batch_functions<typename k::T, k::whole, typename k::V>, a,
                              group_in<P, G>, P::samples, finish_of<P, G>());
  }
};
/// The gradients of gamma and beta: the sums of each group, added once, in order.
///
/// shape: sums (groups, 2, C) -> dgamma (C), dbeta (C); either may be absent
template <>
struct kernel_of<op_kind::batch_parameter_gradient> : custom_facts {
  template <class P, int G>
  static void run(arguments<typename P::element> const& a) {
    host::batch_parameter_gradient(a, group_in<P, G>, P::samples);
  }
};
/// The sums of the running statistics over real rows: of x - m and of (x - m)^2, where m is the
/// running mean; see commit_rule.
///
/// shape: statistics (groups, 3, C), running mean (C) -> two sums (C)
/// law:   computed from the statistics of each group, in order, not from x
template <>
struct kernel_of<op_kind::batch_running_sums> : custom_facts {
  template <class P, int G>
  static void run(arguments<typename P::element> const& a) {
    host::batch_running_sums(a, group_in<P, G>, P::samples);
  }
};
