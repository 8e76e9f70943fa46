// SPDX-License-Identifier: BSL-1.0
//
// Chains of pointwise ops that join no other kernel, and copies of columns.

/// A chain of pointwise ops by itself, as the epilogue of a group without another anchor.
///
/// shape: x (rows, C), second operands (rows, C), (C) or (T, C) -> every stored op (rows, C)
/// work:  parts own rows; every element is read and written once, and memory bounds the speed
template <>
struct kernel_of<op_kind::pointwise> : row_facts {
  template <class P, int G>
  static void run(arguments<typename P::element> const& a) {
    using k = group_rows<P, G>;
    constexpr detail::group g = k::g;
    part_range const own = k::own_rows(a);
    for (extent r = own.begin; r < own.end; ++r)
      chain<P, G, true>::run_row(a, r, a.template values<typename k::V>(g.in[0]) + r * g.columns);
  }
};

/// Rows of two matrices side by side, or a parameter before each row of a matrix.
///
/// shape: left (rows, L) or (L), right (rows, C - L) -> y (rows, C)
template <>
struct kernel_of<op_kind::concat> : row_facts {
  template <class P, int G>
  static void run(arguments<typename P::element> const& a) {
    using k = group_rows<P, G>;
    using V = typename k::V;
    constexpr detail::group g = k::g;
    constexpr detail::concat_attributes of = g.attributes.concat();
    constexpr std::size_t left = std::size_t(of.left), right = std::size_t(g.columns - of.left);
    constexpr extent apart = of.left_is_parameter ? 0 : of.left;  // from row to row of `left`
    part_range const own = k::own_rows(a);
    for (extent r = own.begin; r < own.end; ++r) {
      V* const y = a.template values<V>(g.out[0]) + r * g.columns;
      std::memcpy(y, a.template values<V>(g.in[0]) + r * apart, sizeof(V) * left);
      std::memcpy(y + left, a.template values<V>(g.in[1]) + r * extent(right), sizeof(V) * right);
    }
  }
};

/// Consecutive columns of a matrix.
///
/// shape: x (rows, W) -> y (rows, C) = x[:, first .. first + C)
template <>
struct kernel_of<op_kind::slice> : row_facts {
  template <class P, int G>
  static void run(arguments<typename P::element> const& a) {
    using k = group_rows<P, G>;
    using V = typename k::V;
    constexpr detail::group g = k::g;
    constexpr detail::slice_attributes of = g.attributes.slice();
    part_range const own = k::own_rows(a);
    for (extent r = own.begin; r < own.end; ++r)
      std::memcpy(a.template values<V>(g.out[0]) + r * g.columns,
                  a.template values<V>(g.in[0]) + r * of.columns + of.first,
                  sizeof(V) * std::size_t(g.columns));
  }
};
