// SPDX-License-Identifier: BSL-1.0
//
// Local response norm along rows, and its gradient. Loops go over the whole row for each offset of
// the window, so that they are vector code.

/// to[i] = the sum of from[j] over j in [i - before, i + after] and in [0, n).
///
/// law: j ascending
template <class T>
PIPE_ONE_COPY void window_sums(int n, int before, int after, T const* from, T* to) {
  for (int i = 0; i < n; ++i) to[i] = T(0);
  for (int d = -before; d <= after; ++d) {
    int const begin = d < 0 ? -d : 0, end = d > 0 ? n - d : n;
    PIPE_INDEPENDENT
    for (int i = begin; i < end; ++i) to[i] += from[i + d];
  }
}
/// d = offset + scale / size * the sum of x^2 over a window of `size` columns, and d^-power.
///
/// shape: x (n) -> d, factor (n)
template <class T>
[[gnu::flatten]] PIPE_ONE_COPY void response_factors(detail::response_attributes const& of, int n,
                                                     T const* x, T* d, T* factor) {
  for (int i = 0; i < n; ++i) factor[i] = x[i] * x[i];
  window_sums<T>(n, of.size / 2, (of.size - 1) / 2, factor, d);
  T const scale = T(of.scale) / T(of.size), offset = T(of.offset), power = T(of.power);
  for (int i = 0; i < n; ++i) {
    d[i] = multiply_add(scale, d[i], offset);
    factor[i] = math::exp<products>(-power * math::log<products>(d[i]));
  }
}

/// y = x d^-power in every row, with d as in response_factors.
///
/// shape:  x (rows, C) -> y (rows, C)
/// work:   parts own rows
/// source: Krizhevsky et al., ImageNet Classification with Deep CNNs, 2012, section 3.3
template <>
struct kernel_of<op_kind::response_norm> : column_facts {
  template <class P, int G>
  static void run(arguments<typename P::element> const& a) {
    using k = group_rows<P, G>;
    using T = typename k::T;
    constexpr detail::group g = k::g;
    constexpr int n = g.columns;
    T *const buffer = static_cast<T*>(a.workspace), *const d = buffer + n, *const factor = d + n;
    part_range const own = k::own_rows(a);
    for (extent r = own.begin; r < own.end; ++r) {
      T const* const x = k::row_of(a, g.in[0], r, n, buffer + 5 * n);
      T* const y = k::result_row(a, r, buffer);
      response_factors<T>(g.attributes.response(), n, x, d, factor);
      for (int i = 0; i < n; ++i) y[i] = x[i] * factor[i];
      finish_row<P, G>(a, r, y);
    }
  }
};

/// dx[i] = dy[i] d[i]^-power - 2 scale power / size x[i] * the sum of dy[j] x[j] d[j]^(-power - 1)
/// over all j whose window has i.
///
/// shape: dy, x (rows, C) -> dx (rows, C)
/// work:  parts own rows
template <>
struct kernel_of<op_kind::response_norm_gradient> : column_facts {
  template <class P, int G>
  static void run(arguments<typename P::element> const& a) {
    using k = group_rows<P, G>;
    using T = typename k::T;
    constexpr detail::group g = k::g;
    constexpr int n = g.columns;
    constexpr detail::response_attributes of = g.attributes.response();
    T *const buffer = static_cast<T*>(a.workspace), *const d = buffer + n, *const factor = d + n,
             *const sums = factor + n;
    T const twice = T(2) * T(of.scale) * T(of.power) / T(of.size);
    part_range const own = k::own_rows(a);
    for (extent r = own.begin; r < own.end; ++r) {
      T const *const dy = k::row_of(a, g.in[0], r, n, buffer + 4 * n), *const x = k::row_of(
                                                                           a, g.in[1], r, n,
                                                                           buffer + 5 * n);
      T* const dx = k::result_row(a, r, buffer);
      response_factors<T>(of, n, x, d, factor);
      for (int i = 0; i < n; ++i) d[i] = dy[i] * x[i] * factor[i] / d[i];
      window_sums<T>(n, (of.size - 1) / 2, of.size / 2, d, sums);
      for (int i = 0; i < n; ++i) {
        T const others = twice * x[i] * sums[i];
        dx[i] = multiply_add(dy[i], factor[i], -others);
      }
      finish_row<P, G>(a, r, dx);
    }
  }
};
