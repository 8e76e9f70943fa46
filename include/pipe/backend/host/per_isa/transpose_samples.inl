// SPDX-License-Identifier: BSL-1.0
//
// The transpose of each sample, which moves the channels of an image before its cells, or behind
// them.

/// y[b, r, c] = x[b, c, r].
///
/// shape: x (B, C, R) -> y (B, R, C)
/// work:  parts own samples
template <>
struct kernel_of<op_kind::transpose> : row_facts {
  template <class P, int G>
  static void run(arguments<typename P::element> const& a) {
    using V = typename P::value;
    constexpr detail::group g = P::group_at(G);
    constexpr extent elements = extent(g.rows) * g.columns;
    part_range const own = own_part(P::samples, 1, a.part, a.parts);
    for (extent s = own.begin; s < own.end; ++s)
      transpose(a.template values<V>(g.in[0]) + s * elements, g.columns, g.rows,
                a.template values<V>(g.out[0]) + s * elements);
  }
};
