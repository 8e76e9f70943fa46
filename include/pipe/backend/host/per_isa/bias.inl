// SPDX-License-Identifier: BSL-1.0
//
// Gradients that are sums over rows: of biases, and of a norm's scale and shift.

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

/// A row of the table is a column of [B, T * C].
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

template <>
struct kernel_of<op_kind::norm_parameter_gradient> : row_facts {
  template <class P, int G>
  static void run(arguments<typename P::element> const& a) {
    using k = group_rows<P, G>;
    using T = typename k::T;
    constexpr group g = k::g;
    norm_parameter_gradient<T, k::whole>(
        k::rows, g.columns, k::own_columns(a, g.columns), a.at(g.in[0]), a.at(g.in[1]),
        a.at(g.in[2]), k::maybe(a, g.out[0]), k::maybe(a, g.out[1]), a.accumulate);
  }
};
