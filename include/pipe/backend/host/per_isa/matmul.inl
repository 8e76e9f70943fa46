// SPDX-License-Identifier: BSL-1.0
//
// Matrix products as kernel groups: rows of the left factor may be made by a prologue just before
// they are read, and finished tiles go through an epilogue. The functions are in
// group_products.hpp.

template <>
struct kernel_of<op_kind::matmul> : contraction_facts {
  template <class P, int G>
  static void run(arguments<typename P::element> const& a) {
    using k = group_rows<P, G>;
    host::multiply<typename k::T>(tiles<typename k::T, least_tile_rows<P>()>, a, group_in<P, G>,
                                  k::rows, steps_around<P, G>);
  }
};

template <>
struct kernel_of<op_kind::matmul_input_gradient> : kernel_of<op_kind::matmul> {};

template <>
struct kernel_of<op_kind::matmul_weight_gradient> : weight_gradient_facts {
  template <class P, int G>
  static void run(arguments<typename P::element> const& a) {
    using k = group_rows<P, G>;
    using T = typename k::T;
    column_adder<T> add = nullptr;
    if constexpr (k::g.prologue.size() > 0) add = &column_sums<T, k::whole>;
    multiply_transposed<T>(tiles<T, least_tile_rows<P>()>, a, group_in<P, G>, k::rows, add);
  }
};
