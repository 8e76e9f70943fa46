// SPDX-License-Identifier: BSL-1.0
//
// Products by wgmma against those by the kernels for every GPU: of small integers, whose sums are
// exact in any order, bit for bit, with all that is done to them afterwards.
#pragma once

#include "catch.hpp"

#include <cstring>
#include <vector>

#include <pipe/backend/cuda/lowering/lowering.hpp>
#include <pipe/nn/activation.hpp>

namespace wgmma_agreement {

using pp::op_kind;

/// A product, with a bias and an activation behind it, or the gradient of a bias if it is a
/// weight's gradient. IsTransposed: the second operand is in memory as [N, K].
template <class T, op_kind Kind, int R, int K, int N, bool IsTransposed = false>
struct one_product {
  using element = T;
  using leaves = pp::detail::layers<pp::ReLU>;
  static constexpr int samples = 1, rows = R, inner = K, columns = N;
  static constexpr bool is_weight = Kind == op_kind::matmul_weight_gradient;
  static constexpr pp::detail::group group_at(int) {
    pp::detail::group g;
    g.anchor = Kind;
    g.rows = R, g.attributes = pp::detail::contraction_attributes{K, IsTransposed}, g.columns = N;
    g.in[0] = 0, g.in[1] = 1, g.out[0] = 2;
    g.operands = 4;
    if (is_weight) {
      g.prologue.push_back(pp::detail::pointwise_op{op_kind::bias_gradient, 0, -1, 3, false});
      return g;
    }
    g.epilogue.push_back(pp::detail::pointwise_op{op_kind::bias, 0, 3, -1, false});
    g.epilogue.push_back(pp::detail::pointwise_op{op_kind::map, 0, -1, 4, false});
    g.operands = 5;
    return g;
  }
};

/// Operands, and what becomes of the results, by index.
template <class P>
struct operands {
  using T = typename P::element;
  using out = std::conditional_t<P::is_weight, float, T>;
  static constexpr std::size_t size_of(int index) {
    std::size_t const r = P::rows, k = P::inner, n = P::columns, w = P::is_weight;
    std::size_t const sizes[] = {r * k, (w ? r : k) * n, (w ? k : r) * n, n, w ? 0 : r * n};
    return sizes[index];
  }
  static std::vector<T> numbers(int index) {
    std::vector<T> x;
    for (std::size_t i = 0; i < size_of(index); ++i)
      x.push_back(T(float(int(i * 7 % 11 + i / 5 % 3) - 6)));
    return x;
  }
};

}  // namespace wgmma_agreement
