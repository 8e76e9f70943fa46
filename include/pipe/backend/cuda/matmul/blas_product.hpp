// SPDX-License-Identifier: BSL-1.0
//
// The part of a kernel group around a matrix product that one call of a BLAS library with epilogues
// (cuBLASLt) computes, as a plain description that tests execute literally, and the rest of the
// group, which kernels of this library compute.
//
// BLAS stores matrices by columns. A matrix c[M, N] by rows is c^T[N, M] by columns, and c^T = b^T
// a^T: so A of the call is b, and B of the call is a. Neither is transposed, except for operands
// that kernels read transposed too: the a of a weight's gradient, and a b that is the transpose of
// a parameter.
//
// law: a group's call does not depend on what the group stores. A bias is added to the unrounded
//      sum, as in the kernels; a call takes a residual, or an activation that the library has,
//      where these are joined to the product (passes/joined_ops.hpp). So no bit depends on whether
//      a value inside the group is read elsewhere.
// note: a call that computes GELU always stores the sums before GELU, whether or not backward reads
//       them in this program: another epilogue could have another algorithm, and other bits. By how
//       much the library's tanh differs from math::tanh is not documented; tests allow a rounding.
//       The call does not compute the gradient of a bias: the library would run a kernel for it,
//       too.
// note: the library's ReLU would give equal roundings, but whether it keeps a NaN is not
//       documented; the ReLU of kernels does, so that a step can be rejected.
#pragma once

#include <cstddef>
#include <type_traits>

#include <pipe/backend/cuda/matmul/contraction_group.hpp>
#include <pipe/base/list.hpp>
#include <pipe/graph/layers.hpp>
#include <pipe/nn/activation.hpp>

namespace pp::cuda {

/// The function that a call applies to the sums of a product before they are rounded.
enum class blas_activation : unsigned char {
  none,
  gelu,          ///< D = GELU(sum), by the tanh formula; aux[m, n] = the sum, rounded
  gelu_gradient  ///< D = sum * GELU'(aux)
};

/// D[m, n] = activation(op(A)[m, k] op(B)[k, n] + beta D + C[m, n] + bias[m]), all by columns.
/// Extents and leading dimensions are in elements; C and aux have the layout of D.
struct blas_product {
  extent m = 0, n = 0, k = 0;
  extent lda = 0, ldb = 0, ldd = 0;
  bool transposes_a = false;  ///< A is in memory as [k, m]
  bool transposes_b = false;  ///< B is in memory as [n, k]
  product_format format = product_format::fp32;
  bool makes_fp32 = false;   ///< D is fp32 for every format of A and B
  bool accumulates = false;  ///< beta is 1 if a launch accumulates; else 0, and D is not read
  int a = -1, d = -1;        ///< indices of operands, as are b, bias, c and aux
  int b = -1;     ///< -1: the rows that a prologue has left at the start of the workspace
  int bias = -1;  ///< m numbers of the type of D; -1: none
  int c = -1;     ///< a residual; -1: none
  blas_activation activation = blas_activation::none;
  int aux = -1;  ///< -1: at the start of the workspace, if the activation is `gelu`
  int ops = 0;   ///< ops of the group's epilogue that the call takes
};

/// The call for group g. left: index of the rows of a, or -1; takes_all: whether the call may
/// compute an activation; is_gelu(op): whether the op's formula is GELU by the tanh formula.
///
/// law: D is stored for readers outside the group, if there are any; else in the memory of the next
///      stored result, whose kernel reads D first
template <class IsGelu>
constexpr blas_product blas_product_of(detail::group const& g, product_shape const& s,
                                       product_format format, int left, bool takes_all,
                                       IsGelu is_gelu) {
  bool const weight = g.anchor == op_kind::matmul_weight_gradient;
  blas_product p;
  p.m = s.columns, p.n = s.rows, p.k = s.inner;
  p.transposes_a = g.attributes.contraction().is_transposed;
  p.transposes_b = weight;
  p.lda = p.transposes_a ? p.k : p.m;
  p.ldb = p.transposes_b ? p.n : p.k;
  p.ldd = p.m;
  p.format = format;
  p.makes_fp32 = p.accumulates = weight;
  p.a = g.in[1], p.b = left, p.d = g.out[0];
  if (weight) return p;
  int const length = int(g.epilogue.size());
  auto const stored_before = [&](int i) {
    return int(i == 0 ? g.out[0] : g.epilogue.items[i - 1].store);
  };
  if (length > 0 && stored_before(0) < 0 && g.epilogue.items[0].kind == op_kind::bias) {
    p.bias = g.epilogue.items[0].operand;
    p.ops = 1;
  }
  if (p.ops < length && g.epilogue.items[p.ops].is_joined) {
    detail::pointwise_op const& joined = g.epilogue.items[p.ops];
    if (joined.kind == op_kind::add) {
      p.c = joined.operand;
      ++p.ops;
    } else if (takes_all && is_gelu(joined)) {
      bool const gradient = joined.kind == op_kind::map_gradient;
      p.activation = gradient ? blas_activation::gelu_gradient : blas_activation::gelu;
      p.aux = gradient ? int(joined.operand) : stored_before(p.ops);
      ++p.ops;
    }
  }
  p.d = stored_before(p.ops);
  for (int i = p.ops; p.d < 0 && i < length; ++i) p.d = g.epilogue.items[i].store;
  return p;
}

/// The ops that the call leaves, as a group that reads D.
constexpr detail::group rest_of(detail::group const& g, blas_product const& p) {
  detail::group rest = g;
  rest.anchor = op_kind::pointwise;
  rest.prologue.clear();
  rest.epilogue.clear();
  for (int i = p.ops; i < int(g.epilogue.size()); ++i) rest.epilogue.push_back(g.epilogue.items[i]);
  for (signed char& in : rest.in) in = -1;
  for (signed char& out : rest.out) out = -1;
  rest.in[0] = static_cast<signed char>(p.d);
  return rest;
}

/// The call for group G, which is a product. TakesAll: whether the call may compute an activation.
template <class P, int G, bool TakesAll = true>
constexpr blas_product describe_blas_product() {
  using product = contraction<P, G>;
  constexpr detail::group g = group_of<P, G>::value;
  constexpr auto leaves_gelu = []<class... L>(detail::layers<L...>) {
    return detail::list<bool, sizeof...(L)>{{std::is_same_v<L, GELUTanh>...}};
  }(typename P::leaves{});
  auto const is_gelu = [&](detail::pointwise_op const& s) { return leaves_gelu[s.leaf]; };
  return blas_product_of(g, product::shape, product::format,
                         product::makes_left ? product::stored : int(g.in[0]), TakesAll, is_gelu);
}

/// Bytes of each operand of a product's group, by index.
template <class P, int G>
constexpr detail::list<long, detail::group::max_operands> operand_bytes() {
  constexpr detail::group g = group_of<P, G>::value;
  constexpr bool weight = contraction<P, G>::makes_weight;
  constexpr long number = long(sizeof(typename P::element)), fp32 = long(sizeof(float)),
                 rows = long(g.rows) * P::samples;
  detail::list<long, detail::group::max_operands> bytes;
  auto const set = [&](int index, long n) {
    if (index >= 0) bytes[index] = n;
  };
  auto const set_chain = [&](auto const& chain, long width) {
    for (detail::pointwise_op const& s : chain) {
      if (s.kind == op_kind::bias_gradient) {
        set(s.store, width * fp32);
        continue;
      }
      if (detail::has_third(s.kind)) set(s.operand + 1, width * number);
      set(s.operand, s.kind == op_kind::bias       ? width * number
                     : s.kind == op_kind::prelu    ? width * number
                     : s.kind == op_kind::row_bias ? g.rows * width * number
                     : s.kind == op_kind::dropout  ? long(sizeof(int))
                                                   : rows * width * number);
      set(s.store, rows * width * number);
    }
  };
  long const inner = g.attributes.contraction().inner;
  set(g.in[0], rows * inner * number);
  set(g.in[1], (weight ? rows : inner) * g.columns * number);
  set(g.out[0], weight ? inner * g.columns * fp32 : rows * g.columns * number);
  set_chain(g.prologue, weight ? g.columns : inner);
  set_chain(g.epilogue, g.columns);
  return bytes;
}

}  // namespace pp::cuda
