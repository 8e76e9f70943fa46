// SPDX-License-Identifier: BSL-1.0
//
// The gradients that are sums over rows: of biases, and of a norm's scale and shift.

/// The gradient of a bias: db[c] (+)= sum over r of dy[r, c].
///
/// shape: dy (rows, C) -> db (C)
/// work:  a part sums whole columns, in cache lines of db, so no two threads write to one line
/// law:   rows ascending from zero; the finished sum is added once to db; the number of parts
///        changes no bit
/// cost:  one pass over dy, whose bytes bound it
template <>
struct kernel_of<op_kind::bias_gradient> : row_facts {
  template <class P, int G>
  static void run(arguments<typename P::element> const& a) {
    using k = group_rows<P, G>;
    using T = typename k::T;
    sum_columns<T>(&column_sums<T, k::whole>, a, a.at(k::g.in[0]), k::rows, k::g.columns,
                   a.at(k::g.out[0]));
  }
};

/// The gradient of a table with one row per position: dtable[t, c] (+)= sum over b of dy[b, t, c].
///
/// shape: dy (B, T, C) -> dtable (T, C)
/// law:   as for a bias gradient, with dy as a matrix (B, T * C): row t of the table is columns [t
///        * C, (t + 1) * C)
template <>
struct kernel_of<op_kind::row_bias_gradient> : row_facts {
  template <class P, int G>
  static void run(arguments<typename P::element> const& a) {
    using k = group_rows<P, G>;
    using T = typename k::T;
    sum_columns<T>(&column_sums<T, k::whole>, a, a.at(k::g.in[0]), P::samples,
                   extent(k::g.rows) * k::g.columns, a.at(k::g.out[0]));
  }
};

/// The gradients of a norm's scale and shift, in one pass over dy and x.
///
/// shape: dy (rows, C), x (rows, C), statistics (rows, 2) -> dgamma (C), dbeta (C); either may be
///        absent
/// law:   dgamma[c] (+)= sum over r of dy * xhat and dbeta[c] (+)= sum over r of dy, where xhat =
///        (x - mean_r) * rstd_r; rows ascending
/// work:  a part sums whole columns, in cache lines
template <>
struct kernel_of<op_kind::norm_parameter_gradient> : row_facts {
  template <class P, int G>
  static void run(arguments<typename P::element> const& a) {
    using k = group_rows<P, G>;
    using T = typename k::T;
    constexpr detail::group g = k::g;
    norm_parameter_gradient<T, k::whole>({a.at(g.in[0]), a.at(g.in[1]), a.at(g.in[2]), g.columns},
                                         k::rows, k::own_columns(a, g.columns), a.maybe(g.out[0]),
                                         a.maybe(g.out[1]), a.accumulate);
  }
};
