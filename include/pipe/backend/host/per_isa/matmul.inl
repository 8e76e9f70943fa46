// SPDX-License-Identifier: BSL-1.0
//
// Matrix products as kernel groups: a prologue may make rows of the left factor just before they
// are read, and finished tiles go through an epilogue. The loops are in group_products.hpp.

/// y = epilogue(prologue(x) w).
///
/// shape: x (rows, inner), w (inner, width) -> y (rows, width)
/// work:  parts own rows of y, in multiples of the tallest register tile (row_alignment)
/// law:   an element is one chain of fused multiply-adds over ascending p < inner, for any parts
///        and tiles
/// cost:  2 * rows * inner * width FLOPs; tiles read w from L2 where it fits (best_blocking)
template <>
struct kernel_of<op_kind::matmul> : contraction_facts {
  template <class P, int G>
  static void run(arguments<typename P::element> const& a) {
    using k = group_rows<P, G>;
    using T = typename k::T;
    using V = typename k::V;
    host::multiply<T, V>(products_of<T, V, least_tile_rows<P>(), P::slices>, a, group_in<P, G>,
                         k::rows(a), ends_around<P, G>);
  }
};

/// dx = dy w^T, by the kernel of a forward product: the second operand is the transposed copy of w,
/// which is made once per update.
///
/// shape: dy (rows, width), w^T (width, inner) -> dx (rows, inner)
template <>
struct kernel_of<op_kind::matmul_input_gradient> : kernel_of<op_kind::matmul> {};

/// dw (+)= x^T dy and, if the layer has a bias, db (+)= sum over rows of dy.
///
/// shape: x (rows, inner), dy (rows, width) -> dw (inner, width), db (width)
/// work:  parts own rows of dw, which are columns of x; and columns of db
/// law:   rows ascending from zero; the finished sum is added once to the sum of earlier
///        micro-batches
template <>
struct kernel_of<op_kind::matmul_weight_gradient> : weight_gradient_facts {
  template <class P, int G>
  static void run(arguments<typename P::element> const& a) {
    using k = group_rows<P, G>;
    using T = typename k::T;
    using V = typename k::V;
    column_adder<T, V> add = nullptr;
    if constexpr (k::g.prologue.size() > 0) add = &column_sums<T, k::whole, V>;
    multiply_transposed<T, V>(products_of<T, V, least_tile_rows<P>(), P::slices>, a, group_in<P, G>,
                              k::rows(a), add);
  }
};
