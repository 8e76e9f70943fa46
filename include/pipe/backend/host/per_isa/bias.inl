// SPDX-License-Identifier: BSL-1.0
//
// Gradients that are sums over rows: of biases, and of a norm's scale and shift.

/// out[c] (+)= the sum over rows of in[count, columns], for the columns of this part.
template <class P, int G, class T>
void sum_columns(arguments<T> const& a, T const* in, extent count, extent columns, T* out) {
  using k = group_rows<P, G>;
  share const own = k::own_columns(a, columns);
  column_sums<T, k::whole>(in + own.begin, count, own.size(), columns, out + own.begin,
                           a.accumulate);
}

template <>
struct kernel_of<op_kind::bias_gradient> : row_facts {
  template <class P, int G>
  static void run(arguments<typename P::element> const& a) {
    using k = group_rows<P, G>;
    sum_columns<P, G>(a, a.at(k::g.in[0]), k::rows, k::g.columns, a.at(k::g.out[0]));
  }
};

/// A row of the table is a column of [B, T * C].
template <>
struct kernel_of<op_kind::row_bias_gradient> : row_facts {
  template <class P, int G>
  static void run(arguments<typename P::element> const& a) {
    constexpr group g = P::group_at(G);
    sum_columns<P, G>(a, a.at(g.in[0]), P::samples, extent(g.rows) * g.columns, a.at(g.out[0]));
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
