// SPDX-License-Identifier: BSL-1.0
//
// Batch norm: each column is normalised over all rows of a group of samples, which is a micro-batch
// or, with SyncOver, a part of one. Sums over rows come first,
// as kernels of their own whose parts own columns; then rows are normalised one by one, with
// whatever pointwise ops follow. Samples that only fill up the last micro-batch are in no sum.

/// Rows whose sum is made before it is added to the sum of those before: a single sum of a hundred
/// thousand rows would lose digits.
inline constexpr extent batch_block = 256;

/// A term of column_sums, from row `first` on.
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
/// Sums over rows as column_sums, in blocks of rows.
///
/// law: the order of additions depends on the number of rows only
template <int Sums, bool Whole, class T, class Term>
void block_sums(extent rows, extent columns, Term const& term, T* const (&out)[Sums]) {
  for (extent r = 0; r < rows; r += batch_block)
    column_sums<Sums, Whole, T>(rows - r < batch_block ? rows - r : batch_block, columns,
                                later_rows<Term>{term, r}, out, r > 0);
}

/// x - mean and its square, with a mean per column
template <class T>
struct difference_term {
  T const *x, *mean;
  extent stride;
  [[gnu::always_inline]] void vector(vec<T>* sum, extent r, extent c) const {
    vec<T> const d = load(x + r * stride + c) - load(mean + c);
    sum[0] += d;
    sum[1] += d * d;
  }
  [[gnu::always_inline]] void scalar(T* sum, extent r, extent c) const {
    T const d = x[r * stride + c] - mean[c];
    sum[0] += d;
    sum[1] += d * d;
  }
};
/// dy * xhat and dy, xhat = (x - mean) * rstd with statistics per column
template <class T>
struct batch_term {
  T const *dy, *x, *mean, *rstd;
  extent stride;
  [[gnu::always_inline]] void vector(vec<T>* sum, extent r, extent c) const {
    vec<T> const d = load(dy + r * stride + c);
    sum[0] += d * ((load(x + r * stride + c) - load(mean + c)) * load(rstd + c));
    sum[1] += d;
  }
  [[gnu::always_inline]] void scalar(T* sum, extent r, extent c) const {
    T const d = dy[r * stride + c];
    sum[0] += d * ((x[r * stride + c] - mean[c]) * rstd[c]);
    sum[1] += d;
  }
};

/// Mean, 1 / sqrt(variance + epsilon) and variance of the columns in `own`.
///
/// shape: x (rows, n) -> statistics (3, n)
/// law:   two passes, the second over differences from the first one's mean, which also corrects
///        that mean; rows ascending
template <class T, bool Whole>
PIPE_ONE_COPY void batch_statistics(extent rows, int n, share own, T epsilon, T const* x,
                                    T* statistics) {
  T *const mean = statistics, *const rstd = statistics + n, *const variance = statistics + 2 * n;
  extent const from = own.begin;
  block_sums<1, Whole, T>(rows, own.size(), element_term<T>{x + from, n}, {mean + from});
  for (extent c = from; c < own.end; ++c) mean[c] /= T(rows);
  block_sums<2, Whole, T>(rows, own.size(), difference_term<T>{x + from, mean + from, n},
                          {rstd + from, variance + from});
  for (extent c = from; c < own.end; ++c) {
    T const off = rstd[c] / T(rows), square = variance[c] / T(rows);
    mean[c] += off;
    T const least = square - off * off;
    variance[c] = least < T(0) ? T(0) : least;
    rstd[c] = reciprocal_sqrt(variance[c] + epsilon);
  }
}

/// y = (x - mean) * rstd (* gamma) (+ beta), by column.
///
/// shape: x (n), statistics (2, n) or more, gamma (n) or null, beta (n) or null -> y (n)
template <class T, bool Whole>
PIPE_ONE_COPY void batch_norm_row(int n, T const* x, T const* statistics, T const* gamma,
                                  T const* beta, T* y) {
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
      T v = (x[i] - mean[i]) * rstd[i];
      if (gamma != nullptr) v *= gamma[i];
      y[i] = beta != nullptr ? v + beta[i] : v;
    }
  }
}

/// dx = rstd * (g - mean of g - xhat * mean of g xhat), g = dy * gamma, by column; of constant
/// statistics rstd * g.
///
/// shape: dy, x (n), statistics (2, n), gamma (n) or null, means (2, n) of g xhat and g, or null ->
///        dx (n)
template <class T, bool Whole>
PIPE_ONE_COPY void batch_norm_gradient_row(int n, T const* dy, T const* x, T const* statistics,
                                           T const* gamma, T const* means, T* dx) {
  T const *const mean = statistics, *const rstd = statistics + n;
  int i = 0;
  for (; i + lanes<T> <= n; i += lanes<T>) {
    vec<T> d = load(dy + i);
    vec<T> const r = load(rstd + i);
    if (gamma != nullptr) d *= load(gamma + i);
    if (means != nullptr)
      d -= load(means + n + i) + (load(x + i) - load(mean + i)) * r * load(means + i);
    save(dx + i, d * r);
  }
  if constexpr (!Whole) {
    for (; i < n; ++i) {
      T d = dy[i];
      if (gamma != nullptr) d *= gamma[i];
      if (means != nullptr) d -= means[n + i] + (x[i] - mean[i]) * rstd[i] * means[i];
      dx[i] = d * rstd[i];
    }
  }
}

/// The rows of a micro-batch that are of real samples, `rows` for each of them.
template <class P, class T>
extent real_rows(arguments<T> const& a, int rows) {
  return extent(rows) * (a.valid_samples < P::samples ? a.valid_samples : P::samples);
}

/// Calls run(g, rows) for each group g of samples that has some of the rows `own`: with those.
template <class P, class Run>
void for_groups(detail::batch_attributes const& of, int sample_rows, share own, Run const& run) {
  extent const each = extent(sample_rows) * of.group_size(P::samples);
  for (extent r = own.begin; r < own.end;) {
    extent const g = r / each;
    share const part = within(share{r, own.end}, (g + 1) * each);
    run(g, part);
    r = part.end;
  }
}

/// The statistics of each group or, outside of training, the running ones. Groups without a real
/// sample have zeros, so that their rows are finite.
///
/// shape: x (rows, C), running mean (C), running variance (C) -> statistics (groups, 3, C)
/// work:  a part makes whole columns, in cache lines, so the number of parts changes no bit
template <>
struct kernel_of<op_kind::batch_statistics> : batch_facts {
  template <class P, int G>
  static void run(arguments<typename P::element> const& a) {
    using k = group_rows<P, G>;
    using T = typename k::T;
    constexpr detail::group g = k::g;
    constexpr detail::batch_attributes of = g.attributes.batch();
    constexpr int n = g.columns;
    share const own = k::own_columns(a, n);
    T* const out = a.at(g.out[0]);
    extent const rows = real_rows<P>(a, of.rows);
    for_groups<P>(of, of.rows, share{0, extent(of.rows) * P::samples}, [&](extent i, share group) {
      T* const to = out + i * 3 * n;
      bool const is_running = !a.training || of.is_constant;
      extent const real = within(group, rows).size();
      if (!is_running && real > 0)
        return batch_statistics<T, k::whole>(real, n, own, T(of.epsilon),
                                             a.at(g.in[0]) + group.begin * n, to);
      for (extent c = own.begin; c < own.end; ++c) {
        to[c] = is_running ? a.at(g.in[1])[c] : T(0);
        to[n + c] = is_running ? reciprocal_sqrt(a.at(g.in[2])[c] + T(of.epsilon)) : T(0);
        to[2 * n + c] = is_running ? a.at(g.in[2])[c] : T(0);
      }
    });
  }
};

/// Every row normalised, and scaled and shifted where there are gamma and beta.
///
/// shape: x (rows, C), statistics (groups, 3, C), gamma (C), beta (C) -> y (rows, C)
/// work:  parts own rows
template <>
struct kernel_of<op_kind::batch_norm> : row_facts {
  template <class P, int G>
  static void run(arguments<typename P::element> const& a) {
    using k = group_rows<P, G>;
    using T = typename k::T;
    constexpr detail::group g = k::g;
    T* const buffer = static_cast<T*>(a.workspace);
    for_groups<P>(g.attributes.batch(), g.rows, k::own_rows(a), [&](extent i, share rows) {
      T const* const statistics = a.at(g.in[1]) + i * 3 * g.columns;
      for (extent r = rows.begin; r < rows.end; ++r) {
        T* const y = k::result_row(a, r, buffer);
        batch_norm_row<T, k::whole>(g.columns, a.at(g.in[0]) + r * g.columns, statistics,
                                    k::maybe(a, g.in[2]), k::maybe(a, g.in[3]), y);
        finish_row<P, G>(a, r, y);
      }
    });
  }
};

/// What the gradients need of all rows of a group: the sums of dy * xhat and of dy.
///
/// shape: dy, x (rows, C), statistics (groups, 3, C) -> sums (groups, 2, C)
/// work:  a part makes whole columns
template <>
struct kernel_of<op_kind::batch_sums> : batch_facts {
  template <class P, int G>
  static void run(arguments<typename P::element> const& a) {
    using k = group_rows<P, G>;
    using T = typename k::T;
    constexpr detail::group g = k::g;
    constexpr detail::batch_attributes of = g.attributes.batch();
    constexpr int n = g.columns;
    share const own = k::own_columns(a, n);
    for_groups<P>(of, of.rows, share{0, real_rows<P>(a, of.rows)}, [&](extent i, share rows) {
      T const* const mean = a.at(g.in[2]) + i * 3 * n + own.begin;
      T* const sums = a.at(g.out[0]) + i * 2 * n + own.begin;
      extent const from = rows.begin * n + own.begin;
      block_sums<2, k::whole, T>(
          rows.size(), own.size(),
          batch_term<T>{a.at(g.in[0]) + from, a.at(g.in[1]) + from, mean, mean + n, n},
          {sums, sums + n});
    });
  }
};

/// The gradient by the input of a batch norm. Rows that only fill up the micro-batch have none:
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
    using T = typename k::T;
    constexpr detail::group g = k::g;
    constexpr detail::batch_attributes of = g.attributes.batch();
    constexpr int n = g.columns;
    T* const buffer = static_cast<T*>(a.workspace);
    extent const real = real_rows<P>(a, g.rows), each = extent(g.rows) * of.group_size(P::samples);
    T const *const sums = k::maybe(a, g.in[3]), *const gamma = k::maybe(a, g.in[4]);
    T* const means = sums != nullptr ? buffer + n : nullptr;
    for_groups<P>(of, g.rows, k::own_rows(a), [&](extent i, share rows) {
      extent const count = within(share{i * each, (i + 1) * each}, real).size();
      for (int c = 0; sums != nullptr && count > 0 && c < 2 * n; ++c)
        means[c] = sums[i * 2 * n + c] * (gamma != nullptr ? gamma[c % n] : T(1)) / T(count);
      for (extent r = rows.begin; r < rows.end; ++r) {
        T* const dx = k::result_row(a, r, buffer);
        if (r < real)
          batch_norm_gradient_row<T, k::whole>(n, a.at(g.in[0]) + r * n, a.at(g.in[1]) + r * n,
                                               a.at(g.in[2]) + i * 3 * n, gamma, means, dx);
        else
          std::memset(dx, 0, sizeof(T) * std::size_t(n));
        finish_row<P, G>(a, r, dx);
      }
    });
  }
};

/// to[c] (+)= from[c]
template <class T>
void add_to_sum(int n, T const* from, T* to, bool accumulate) {
  for (int c = 0; c < n; ++c) to[c] = accumulate ? to[c] + from[c] : from[c];
}

/// The gradients of gamma and beta: the sums of each group, added once, in order.
///
/// shape: sums (groups, 2, C) -> dgamma (C), dbeta (C); either may be absent
template <>
struct kernel_of<op_kind::batch_parameter_gradient> : custom_facts {
  template <class P, int G>
  static void run(arguments<typename P::element> const& a) {
    using k = group_rows<P, G>;
    constexpr detail::group g = k::g;
    share const own = k::own_columns(a, g.columns);
    for_groups<P>(g.attributes.batch(), 1, share{0, real_rows<P>(a, 1)}, [&](extent of, share) {
      for (int i = 0; i < 2; ++i)
        if (auto* const to = k::maybe(a, g.out[i]))
          add_to_sum(int(own.size()), a.at(g.in[0]) + (2 * of + i) * g.columns + own.begin,
                     to + own.begin, a.accumulate || of > 0);
    });
  }
};

/// The sums of the running statistics, over real rows: of x - m and of (x - m)^2, where m is the
/// running mean, see commit_rule.
///
/// shape: statistics (groups, 3, C), running mean (C) -> two sums (C)
/// law:   made of the statistics of each group, in order, not of x
template <>
struct kernel_of<op_kind::batch_running_sums> : custom_facts {
  template <class P, int G>
  static void run(arguments<typename P::element> const& a) {
    using k = group_rows<P, G>;
    using T = typename k::T;
    constexpr detail::group g = k::g;
    constexpr int n = g.columns;
    constexpr detail::batch_attributes of = g.attributes.batch();
    T const* const running = a.at(g.in[1]);
    share const own = k::own_columns(a, n);
    for_groups<P>(of, of.rows, share{0, real_rows<P>(a, of.rows)}, [&](extent i, share group) {
      T const* const statistics = a.at(g.in[0]) + i * 3 * n;
      T const rows = T(group.size());
      for (extent c = own.begin; c < own.end; ++c) {
        T const d = statistics[c] - running[c], sum = rows * d,
                squares = rows * (statistics[2 * n + c] + d * d);
        add_to_sum(1, &sum, a.at(g.out[0]) + c, a.accumulate || i > 0);
        add_to_sum(1, &squares, a.at(g.out[1]) + c, a.accumulate || i > 0);
      }
    });
  }
};
