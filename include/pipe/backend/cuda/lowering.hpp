// SPDX-License-Identifier: BSL-1.0
//
// From a kernel group to the kernels that compute it, one after the other: the list of families.
#pragma once

#include <initializer_list>
#include <utility>

#include <pipe/backend/cuda/attention/attention.hpp>
#include <pipe/backend/cuda/matmul/blas_lowering.hpp>
#include <pipe/backend/cuda/block/kernel_list.hpp>
#include <pipe/backend/cuda/rows/column_sums.hpp>
#include <pipe/backend/cuda/rows/concat.hpp>
#include <pipe/backend/cuda/matmul/contraction.hpp>
#include <pipe/backend/cuda/rows/custom.hpp>
#include <pipe/backend/cuda/rows/gate.hpp>
#include <pipe/backend/cuda/rows/lookup.hpp>
#include <pipe/backend/cuda/rows/losses.hpp>
#include <pipe/backend/cuda/narrow_mlp/programs.hpp>
#include <pipe/backend/cuda/rows/pointwise.hpp>
#include <pipe/backend/cuda/rows/pool.hpp>
#include <pipe/backend/cuda/matmul/matmul_choice.hpp>
#include <pipe/backend/cuda/rows/rowwise.hpp>
#include <pipe/base/bytes.hpp>

namespace pp::cuda {

template <class P, int G, int... I>
constexpr auto lower_lookup_gradient(std::integer_sequence<int, I...>) {
  return bodies<order_rows_kernel<P, G, I>..., clear_absent_kernel<P, G>, sum_chunks_kernel<P, G>,
                join_chunks_kernel<P, G>>{};
}

template <class P, int G>
constexpr auto lower_group() {
  constexpr op_kind anchor = group_of<P, G>::value.anchor;
  if constexpr (anchor == op_kind::pointwise)
    return bodies<pointwise_kernel<P, G>>{};
  else if constexpr (is_contraction(anchor))
    return lower_contraction<P, G>();
  else if constexpr (is_attention(anchor))
    return attention_bodies<P, G>();
  else if constexpr (anchor == op_kind::norm)
    return bodies<norm_kernel<P, G>>{};
  else if constexpr (anchor == op_kind::norm_gradient)
    return bodies<norm_gradient_kernel<P, G>>{};
  else if constexpr (anchor == op_kind::softmax)
    return bodies<softmax_kernel<P, G>>{};
  else if constexpr (anchor == op_kind::softmax_gradient)
    return bodies<softmax_gradient_kernel<P, G>>{};
  else if constexpr (anchor == op_kind::bias_gradient)
    return column_sums<bias_source<P, G>>();
  else if constexpr (anchor == op_kind::row_bias_gradient)
    return column_sums<row_bias_source<P, G>>();
  else if constexpr (anchor == op_kind::norm_parameter_gradient)
    return column_sums<norm_parameter_source<P, G>>();
  else if constexpr (anchor == op_kind::gate)
    return bodies<gate_kernel<P, G>>{};
  else if constexpr (anchor == op_kind::gate_gradient)
    return bodies<gate_gradient_kernel<P, G>>{};
  else if constexpr (anchor == op_kind::pool)
    return bodies<pool_kernel<P, G>>{};
  else if constexpr (anchor == op_kind::pool_gradient)
    return bodies<pool_gradient_kernel<P, G>>{};
  else if constexpr (anchor == op_kind::cross_entropy)
    return bodies<cross_entropy_kernel<P, G>>{};
  else if constexpr (anchor == op_kind::squared_error)
    return bodies<element_loss_kernel<P, G, squared_difference>>{};
  else if constexpr (anchor == op_kind::element_loss)
    return bodies<element_loss_kernel<
        P, G, typename leaf_at<group_of<P, G>::value.leaf, typename P::leaves>::formula>>{};
  else if constexpr (anchor == op_kind::lookup)
    return bodies<lookup_kernel<P, G>>{};
  else if constexpr (anchor == op_kind::lookup_gradient)
    return lower_lookup_gradient<P, G>(
        std::make_integer_sequence<int, lookup_gradient<P, G>::order_kernels>{});
  else if constexpr (anchor == op_kind::concat)
    return bodies<concat_kernel<P, G>>{};
  else if constexpr (anchor == op_kind::slice)
    return bodies<slice_kernel<P, G>>{};
  else if constexpr (is_custom(anchor))
    return lower_custom<P, G>();
  else
    static_assert(sizeof(op_kind_without::cuda_body<anchor>) > 0);
}
/// The kernels of group G of pipeline P.
template <class P, int G>
using lowered = decltype(lower_group<P, G>());

/// Bytes of workspace of group G. Our own kernels must find enough where cuBLASLt is not.
template <class P, int G, product_policy Policy>
constexpr long workspace_of() {
  long needed = workspace_of(lowered<P, G>{});
  if constexpr (policy_of<P, G, Policy>() != product_policy::own)
    if (blas_lowering<P, G>::workspace_bytes > needed)
      needed = blas_lowering<P, G>::workspace_bytes;
  return needed;
}

/// Bytes of workspace of a compiled pipeline: what its groups and its narrow runs need.
template <class P>
constexpr long workspace_bytes() {
  return []<int... G>(std::integer_sequence<int, G...>) {
    long most = 0;
    for (long const needed : {0L, workspace_of<source_of<P>, G, P::products>()...})
      if (needed > most) most = needed;
    for_each_narrow_run<P>([&]<class Kernels>(Kernels, launch const*, int) {
      if (Kernels::workspace_bytes > most) most = Kernels::workspace_bytes;
    });
    return align_up(most);
  }(std::make_integer_sequence<int, P::groups>{});
}

}  // namespace pp::cuda
