// SPDX-License-Identifier: BSL-1.0
//
// LayerNorm and RMSNorm along rows, and their gradient by the input.

/// The terms g and g * xhat, g = dy * gamma, xhat = (x - mean) * rstd.
template <class T, class V = T>
struct norm_gradient_term {
  T const *dy, *x;
  V const* gamma;
  T mean, rstd;
  [[gnu::always_inline]] void vector(vec<T>* sum, int i) const {
    vec<T> const g = load(dy + i) * load(gamma + i);
    sum[0] += g;
    sum[1] = multiply_add(g, (load(x + i) - mean) * rstd, sum[1]);
  }
  [[gnu::always_inline]] void scalar(T* sum, int i) const {
    T const g = dy[i] * T(gamma[i]);
    sum[0] += g;
    sum[1] = multiply_add(g, (x[i] - mean) * rstd, sum[1]);
  }
};

/// y = (x - mean) * rstd * gamma (+ beta), rstd = 1 / sqrt(mean of (x - mean)^2 + epsilon).
/// RMSNorm: mean = 0.
///
/// shape:  x (n), gamma (n), beta (n) or null -> y (n), statistics {mean, rstd}
/// law:    two passes: the variance is a sum of squared differences, so no digits cancel; the order
///         of sums depends on n and sum_lanes only
/// source: Ba et al., Layer Normalization, 2016; Zhang, Sennrich, RMSNorm, 2019
///
/// Whole: n is a multiple of the lanes. Streams: y is written past the caches.
template <class T, bool Whole, bool Streams, class V = T>
PIPE_ONE_COPY void norm_row(int n, bool has_mean, T epsilon, T const* x, V const* gamma,
                            V const* beta, T* statistics, T* y) {
  T const mean = has_mean ? row_sum<T, Whole>(n, plain_term<T>{x}) / T(n) : T(0);
  T const rstd = reciprocal_sqrt(row_sum<T, Whole>(n, square_term<T>{x, mean}) / T(n) + epsilon);
  statistics[0] = mean;
  statistics[1] = rstd;
  int i = 0;
  for (; i + lanes<T> <= n; i += lanes<T>) {
    vec<T> v = (load(x + i) - mean) * rstd * load(gamma + i);
    if (beta != nullptr) v += load(beta + i);
    if constexpr (Streams)
      stream(y + i, v);
    else
      save(y + i, v);
  }
  if constexpr (!Whole)
    for (; i < n; ++i)
      y[i] = (x[i] - mean) * rstd * T(gamma[i]) + (beta != nullptr ? T(beta[i]) : T(0));
}

/// dx = rstd * (g - mean(g) - xhat * mean(g * xhat)), g = dy * gamma, xhat = (x - mean) * rstd.
/// RMSNorm: without mean(g).
///
/// shape: dy, x, gamma (n), statistics {mean, rstd} -> dx (n)
/// law:   both means come from one pass; the order of sums depends on n and sum_lanes only
template <class T, bool Whole, class V = T>
PIPE_ONE_COPY void norm_gradient_row(int n, bool has_mean, T const* dy, T const* x, V const* gamma,
                                     T const* statistics, T* dx) {
  T const mean = statistics[0], rstd = statistics[1];
  T sums[2];
  row_sums<2, Whole, T>(n, norm_gradient_term<T, V>{dy, x, gamma, mean, rstd}, sums);
  T const mean_g = has_mean ? sums[0] / T(n) : T(0), mean_gx = sums[1] / T(n);
  int i = 0;
  for (; i + lanes<T> <= n; i += lanes<T>) {
    vec<T> const g = multiply_add(load(dy + i), load(gamma + i), all_lanes(-mean_g)),
                 xhat = (load(x + i) - mean) * rstd;
    save(dx + i, multiply_add(-xhat, all_lanes(mean_gx), g) * rstd);
  }
  if constexpr (!Whole) {
    for (; i < n; ++i) {
      T const g = multiply_add(dy[i], T(gamma[i]), -mean_g), xhat = (x[i] - mean) * rstd;
      dx[i] = multiply_add(-xhat, mean_gx, g) * rstd;
    }
  }
}

/// LayerNorm or RMSNorm of every row.
///
/// shape: x (rows, C), gamma (C), beta (C) if there is one -> y (rows, C), statistics (rows, 2):
///        mean, rstd
/// work:  parts own rows; a row stays in L1 from the prologue to the epilogue
template <>
struct kernel_of<op_kind::norm> : row_facts {
  template <class P, int G>
  static void run(arguments<typename P::element> const& a) {
    using k = group_rows<P, G>;
    using T = typename k::T;
    constexpr detail::group g = k::g;
    using V = typename k::V;
    constexpr detail::norm_attributes of = g.attributes.norm();
    T* const buffer = static_cast<T*>(a.workspace);
    part_range const own = k::own_rows(a);
    for (extent r = own.begin; r < own.end; ++r) {
      T* const y = k::result_row(a, r, buffer);
      norm_row<T, k::whole, streams<P, G>() && g.epilogue.size() == 0, V>(
          g.columns, of.has_mean, T(of.epsilon), k::main_row(a, r, buffer + g.columns),
          a.template values<V>(g.in[1]), a.template maybe_values<V>(g.in[2]),
          a.at(g.out[1]) + 2 * r, y);
      finish_row<P, G>(a, r, y);
    }
  }
};

/// The gradient by the input of a norm; kernel_of<norm_parameter_gradient> computes the gradients
/// of gamma and beta.
///
/// shape: dy, x (rows, C), gamma (C), statistics (rows, 2) -> dx (rows, C)
/// work:  parts own rows
template <>
struct kernel_of<op_kind::norm_gradient> : row_facts {
  template <class P, int G>
  static void run(arguments<typename P::element> const& a) {
    using k = group_rows<P, G>;
    using T = typename k::T;
    constexpr detail::group g = k::g;
    T* const buffer = static_cast<T*>(a.workspace);
    part_range const own = k::own_rows(a);
    for (extent r = own.begin; r < own.end; ++r) {
      T* const dx = k::result_row(a, r, buffer);
      norm_gradient_row<T, k::whole>(g.columns, g.attributes.norm().has_mean,
                                     k::row_of(a, g.in[0], r, g.columns, buffer + g.columns),
                                     k::row_of(a, g.in[1], r, g.columns, buffer + 2 * g.columns),
                                     a.template values<typename k::V>(g.in[2]),
                                     a.at(g.in[3]) + 2 * r, dx);
      finish_row<P, G>(a, r, dx);
    }
  }
};
