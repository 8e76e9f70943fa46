// SPDX-License-Identifier: BSL-1.0
//
// The lowering of a kernel group whose matrix product is a call of cuBLASLt, with kernels before
// and after the call. Before: the rows that a prologue makes. After: the ops of the epilogue that
// the call has left, in one pass, or the gradient of a bias.
#pragma once

#include <pipe/backend/cuda/matmul/blas_product.hpp>
#include <pipe/backend/cuda/core/kernel_list.hpp>
#include <pipe/backend/cuda/rows/row_sources.hpp>
#include <pipe/backend/cuda/matmul/contraction.hpp>
#include <pipe/backend/cuda/rows/pointwise.hpp>

namespace pp::cuda {

/// Bytes of workspace of a call, as NVIDIA recommends for Hopper. The workspace begins at a
/// multiple of `blas_alignment`.
inline constexpr long blas_bytes = long(32) << 20, blas_alignment = 256;

/// A source of kernels with one group: the ops that a call leaves of group G of P.
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
/// The kernels after the call: the gradient of a bias, or the ops that the call has left.
template <class P, int G, bool TakesAll>
constexpr auto after_blas() {
  using product = contraction<P, G>;
  constexpr detail::group g = group_of<P, G>::value;
  if constexpr (product::sums_bias)
    return kernel_list<column_sums_kernel<bias_source<P, G, g.in[1], product::stored>>>{};
  else if constexpr (describe_blas_product<P, G, TakesAll>().ops < int(g.epilogue.size()))
    return kernel_list<pointwise_kernel<rest_source<P, G, TakesAll>, 0>>{};
  else
    return kernel_list<>{};
}

/// The launches of group G around a library's call. TakesAll: whether the call may compute an
/// activation; if the library has no algorithm for that, a lowering without TakesAll leaves the
/// activation to a kernel.
template <class P, int G, bool TakesAll = true>
struct blas_lowering {
  static constexpr blas_product product = describe_blas_product<P, G, TakesAll>();
  using before = decltype(before_blas<P, G>());
  using after = decltype(after_blas<P, G, TakesAll>());
  /// Bytes at the start of the workspace for the sums before an activation, where nothing reads
  /// these sums. The call stores them nevertheless, so that the library's algorithm does not depend
  /// on what reads them.
  static constexpr long aux_bytes =
      product.activation == blas_activation::gelu && product.aux < 0
          ? detail::align_up(long(product.m * product.n) * bytes_of(product.format))
          : 0;
  /// The offset from which on the workspace of the call begins.
  static constexpr long first_byte = contraction<P, G>::left_bytes + aux_bytes;
  static constexpr long call_bytes = first_byte + blas_bytes + blas_alignment;
  static constexpr long after_bytes = workspace_of(after{});
  static constexpr long workspace_bytes = call_bytes > after_bytes ? call_bytes : after_bytes;
};

}  // namespace pp::cuda
