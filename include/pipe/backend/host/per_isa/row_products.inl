// SPDX-License-Identifier: BSL-1.0
//
// Products along rows: of two rows, one number; of a row and a number, a row.

/// The sum of x z over a row.
///
/// shape: x, z (n) -> y (1)
template <class T, bool Whole>
PIPE_ONE_COPY void dot_row(int n, T const* x, T const* z, T* y) {
  *y = row_sum<T, Whole>(n, product_term<T>{x, z});
}

/// y = s x for one row and one number.
///
/// shape: x (n) -> y (n)
template <class T>
PIPE_ONE_COPY void scaled_row(int n, T const* x, T s, T* y) {
  PIPE_INDEPENDENT
  for (int i = 0; i < n; ++i) y[i] = x[i] * s;
}

/// The sums of x z along the rows.
///
/// shape: x, z (rows, C) -> y (rows, 1)
/// law:   the order of additions depends on C only: see row_sums
/// work:  parts own rows
template <>
struct kernel_of<op_kind::row_dot> : dot_facts {
  template <class P, int G>
  static void run(arguments<typename P::element> const& a) {
    using k = group_rows<P, G>;
    using T = typename k::T;
    constexpr detail::group g = k::g;
    constexpr int inner = g.attributes.contraction().inner;
    part_range const own = k::own_rows(a);
    for (extent r = own.begin; r < own.end; ++r) {
      T* const y = k::result_row(a, r, static_cast<T*>(a.workspace));
      T* const room = static_cast<T*>(a.workspace) + g.columns;
      dot_row<T, (inner % lanes<T> == 0)>(inner, k::row_of(a, g.in[0], r, inner, room),
                                          k::row_of(a, g.in[1], r, inner, room + inner), y);
      finish_row<P, G>(a, r, y);
    }
  }
};

/// Each row times a number.
///
/// shape: x (rows, C), s (rows, 1) -> y (rows, C)
/// work:  parts own rows
template <>
struct kernel_of<op_kind::row_scale> : row_facts {
  template <class P, int G>
  static void run(arguments<typename P::element> const& a) {
    using k = group_rows<P, G>;
    using T = typename k::T;
    constexpr detail::group g = k::g;
    part_range const own = k::own_rows(a);
    for (extent r = own.begin; r < own.end; ++r) {
      T* const buffer = static_cast<T*>(a.workspace);
      T* const y = k::result_row(a, r, buffer);
      scaled_row<T>(g.columns, k::row_of(a, g.in[0], r, g.columns, buffer + g.columns),
                    T(a.template values<typename k::V>(g.in[1])[r]), y);
      finish_row<P, G>(a, r, y);
    }
  }
};
