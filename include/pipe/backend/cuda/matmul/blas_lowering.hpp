// SPDX-License-Identifier: BSL-1.0
//
// A kernel group around a matrix product whose product is a library's call: our own kernels before
// and after it. Before: the rows that a prologue makes. After: the steps of the epilogue that the
// call left, in one pass; or the gradient of a bias.
#pragma once

#include <pipe/backend/cuda/matmul/blas_product.hpp>
#include <pipe/backend/cuda/core/kernel_list.hpp>
#include <pipe/backend/cuda/rows/column_sums.hpp>
#include <pipe/backend/cuda/matmul/contraction.hpp>
#include <pipe/backend/cuda/rows/pointwise.hpp>

namespace pp::cuda {

/// Workspace of a call, all that any call may ask for: what NVIDIA recommends for Hopper. It begins
/// at a multiple of `blas_alignment`.
inline constexpr long blas_bytes = long(32) << 20, blas_alignment = 256;

/// A source of kernels whose one group is what a call leaves of P's group G.
template <class P, int G, bool TakesAll>
struct rest_source : P {
  static constexpr detail::group group_at(int) {
    return rest_of(group_of<P, G>::value, describe_blas_product<P, G, TakesAll>());
  }
};

/// The kernels before the call: the rows that a prologue makes, if there is one.
template <class P, int G>
constexpr auto before_blas() {
  if constexpr (contraction<P, G>::makes_left)
    return kernel_list<left_rows_kernel<P, G>>{};
  else
    return kernel_list<>{};
}
/// The kernels after the call: the gradient of a bias, or the steps that the call has left.
template <class P, int G, bool TakesAll>
constexpr auto after_blas() {
  using product = contraction<P, G>;
  constexpr detail::group g = group_of<P, G>::value;
  if constexpr (product::sums_bias)
    return kernel_list<
        column_sums_kernel<element_source<typename P::element, product::shape.inner,
                                          product::shape.columns, g.in[1], product::stored>>>{};
  else if constexpr (describe_blas_product<P, G, TakesAll>().steps < int(g.epilogue.size()))
    return kernel_list<pointwise_kernel<rest_source<P, G, TakesAll>, 0>>{};
  else
    return kernel_list<>{};
}

/// The launches of group G around a library's call. TakesAll: whether the call may compute an
/// activation; where the library has no algorithm that does, another lowering leaves it to a
/// kernel.
template <class P, int G, bool TakesAll = true>
struct blas_lowering {
  static constexpr blas_product product = describe_blas_product<P, G, TakesAll>();
  using before = decltype(before_blas<P, G>());
  using after = decltype(after_blas<P, G, TakesAll>());
  /// Bytes at the start of the workspace: of the sums before an activation that nothing reads. The
  /// library stores them all the same, so that its algorithm does not depend on who reads them.
  static constexpr long aux_bytes =
      product.activation == blas_activation::gelu && product.aux < 0
          ? detail::align_up(long(product.m * product.n) * bytes_of(product.format))
          : 0;
  /// Where the call's own workspace may begin.
  static constexpr long first_byte = contraction<P, G>::left_bytes + aux_bytes;
  static constexpr long call_bytes = first_byte + blas_bytes + blas_alignment;
  static constexpr long after_bytes = workspace_of(after{});
  static constexpr long workspace_bytes = call_bytes > after_bytes ? call_bytes : after_bytes;
};

}  // namespace pp::cuda
