// SPDX-License-Identifier: BSL-1.0
//
// The part of a kernel group around a matrix product that one call of a BLAS library with epilogues
// (cuBLASLt) computes: a plain description, so that tests execute it literally, and what is left of
// the group for kernels of our own.
//
// Libraries count elements down columns. A matrix c[M, N] in rows is c^T[N, M] in columns, and c^T
// = b^T a^T: so the library's A is our b, its B is our a, and neither is transposed but those that
// we read transposed, too: the a of a weight's gradient, and a b that is a parameter's transpose.
//
// law: a group's call is the same whatever the group stores. A bias is added to the sum before
//      both are rounded, once, as our own kernels do; a residual, and the activations that
//      libraries have, are taken where they are one with the product (passes/joined_ops.hpp). So
//      no bit depends on whether a value inside the group is read elsewhere.
// note: a call that computes GELU always stores the sums before it, whether or not backward reads
//       them in this program: another epilogue could have another algorithm, and other bits.
//       What the library's tanh differs from ours by is not documented; tests allow a rounding.
//       A bias's gradient, the sums of what a weight's gradient reads, is not asked of the call:
//       the library makes it in a kernel of its own too.
// note: a library's ReLU would round alike, but whether it keeps a NaN is not documented; ours
//       does, so that a step can be rejected.
#pragma once

#include <cstddef>
#include <type_traits>

#include <pipe/backend/cuda/matmul/contraction_group.hpp>
#include <pipe/base/list.hpp>
#include <pipe/graph/layers.hpp>
#include <pipe/nn/activation.hpp>

namespace pp::cuda {

/// What becomes of the sums of a product before they are rounded.
enum class blas_activation : unsigned char {
  none,
  gelu,          ///< D = GELU(sum), by the tanh formula; aux[m, n] = the sum, rounded
  gelu_gradient  ///< D = sum * GELU'(aux)
};

/// D[m, n] = activation(op(A)[m, k] op(B)[k, n] + beta D + C[m, n] + bias[m]), all in columns.
/// Extents and leading dimensions count elements; C and aux are in memory like D.
struct blas_product {
  extent m = 0, n = 0, k = 0;
  extent lda = 0, ldb = 0, ldd = 0;
  bool transposes_a = false;  ///< A is in memory as [k, m]
  bool transposes_b = false;  ///< B is in memory as [n, k]
  product_format format = product_format::fp32;
  bool makes_fp32 = false;   ///< D is fp32 whatever A and B are
  bool accumulates = false;  ///< beta is 1 where a launch accumulates; else 0, and D is not read
  int a = -1, d = -1;        ///< slots of the group
  int b = -1;     ///< the same; -1: the rows that a prologue left at the start of the workspace
  int bias = -1;  ///< of m numbers, of the type of D; -1: none
  int c = -1;     ///< a residual; -1: none
  blas_activation activation = blas_activation::none;
  int aux = -1;   ///< slot; -1: at the start of the workspace, if the activation is `gelu`
  int steps = 0;  ///< steps of the group's epilogue that the call takes
};

/// takes_all: whether the library may compute an activation
/// is_gelu(step): whether the step's formula is the tanh GELU's
/// law: D is where readers outside the group find it, if there are any; else where the next result
///      is stored, by a pass that reads D first
template <class IsGelu>
constexpr blas_product blas_product_of(detail::group const& g, product_shape const& s,
                                       product_format format, int left, bool takes_all,
                                       IsGelu is_gelu) {
  bool const weight = g.anchor == op_kind::matmul_weight_gradient;
  blas_product p;
  p.m = s.columns, p.n = s.rows, p.k = s.inner;
  p.transposes_a = g.attributes.contraction().is_turned;
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
    p.bias = g.epilogue.items[0].slot;
    p.steps = 1;
  }
  if (p.steps < length && g.epilogue.items[p.steps].is_joined) {
    detail::step const& joined = g.epilogue.items[p.steps];
    if (joined.kind == op_kind::add) {
      p.c = joined.slot;
      ++p.steps;
    } else if (takes_all && is_gelu(joined)) {
      bool const gradient = joined.kind == op_kind::map_gradient;
      p.activation = gradient ? blas_activation::gelu_gradient : blas_activation::gelu;
      p.aux = gradient ? int(joined.slot) : stored_before(p.steps);
      ++p.steps;
    }
  }
  p.d = stored_before(p.steps);
  for (int i = p.steps; p.d < 0 && i < length; ++i) p.d = g.epilogue.items[i].store;
  return p;
}

/// The steps that the call leaves, as a group of their own on what it wrote.
constexpr detail::group rest_of(detail::group const& g, blas_product const& p) {
  detail::group rest = g;
  rest.anchor = op_kind::pointwise;
  rest.prologue.clear();
  rest.epilogue.clear();
  for (int i = p.steps; i < int(g.epilogue.size()); ++i)
    rest.epilogue.push_back(g.epilogue.items[i]);
  for (signed char& in : rest.in) in = -1;
  for (signed char& out : rest.out) out = -1;
  rest.in[0] = static_cast<signed char>(p.d);
  return rest;
}

/// Of group G, which is a product. TakesAll: whether the library may compute an activation.
template <class P, int G, bool TakesAll = true>
constexpr blas_product describe_blas_product() {
  using product = contraction<P, G>;
  constexpr detail::group g = group_of<P, G>::value;
  constexpr auto leaves_gelu = []<class... L>(detail::layers<L...>) {
    return detail::list<bool, sizeof...(L)>{{std::is_same_v<L, GELUTanh>...}};
  }(typename P::leaves{});
  auto const is_gelu = [&](detail::step const& s) { return leaves_gelu[s.leaf]; };
  return blas_product_of(g, product::shape, product::format,
                         product::makes_left ? product::stored : int(g.in[0]), TakesAll, is_gelu);
}

/// Bytes of each operand of a product's group, by slot.
template <class P, int G>
constexpr detail::list<long, detail::group::max_slots> operand_bytes() {
  constexpr detail::group g = group_of<P, G>::value;
  constexpr bool weight = contraction<P, G>::makes_weight;
  constexpr long number = long(sizeof(typename P::element)), fp32 = long(sizeof(float)),
                 rows = long(g.rows) * P::samples;
  detail::list<long, detail::group::max_slots> bytes;
  auto const set = [&](int slot, long n) {
    if (slot >= 0) bytes[slot] = n;
  };
  auto const set_chain = [&](auto const& chain, long width) {
    for (detail::step const& s : chain) {
      if (s.kind == op_kind::bias_gradient) {
        set(s.store, width * fp32);
        continue;
      }
      set(s.slot, s.kind == op_kind::bias       ? width * number
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
