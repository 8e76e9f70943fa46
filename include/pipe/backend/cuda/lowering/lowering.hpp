// SPDX-License-Identifier: BSL-1.0
//
// The lowering of a kernel group to a list of kernels.
#pragma once

#include <initializer_list>
#include <utility>

#include <pipe/backend/cuda/core/kernel_list.hpp>  // first, so that the notes of an error are short
#include <pipe/backend/cuda/attention/attention.hpp>
#include <pipe/backend/cuda/attention/attention_call.hpp>
#include <pipe/backend/cuda/hopper/wgmma_tiles.hpp>
#include <pipe/backend/cuda/matmul/blas_lowering.hpp>
#include <pipe/backend/cuda/rows/batch_norm.hpp>
#include <pipe/backend/cuda/rows/row_sources.hpp>
#include <pipe/backend/cuda/rows/concat.hpp>
#include <pipe/backend/cuda/convolution/convolution.hpp>
#include <pipe/backend/cuda/matmul/contraction.hpp>
#include <pipe/backend/cuda/rows/contrast.hpp>
#include <pipe/backend/cuda/rows/custom.hpp>
#include <pipe/backend/cuda/rows/gate.hpp>
#include <pipe/backend/cuda/rows/group_norm.hpp>
#include <pipe/backend/cuda/rows/lookup.hpp>
#include <pipe/backend/cuda/rows/losses.hpp>
#include <pipe/backend/cuda/rows/row_loss.hpp>
#include <pipe/backend/cuda/narrow_mlp/narrow_mlp.hpp>
#include <pipe/backend/cuda/rows/norm_gradients.hpp>
#include <pipe/backend/cuda/rows/pointwise.hpp>
#include <pipe/backend/cuda/rows/pool.hpp>
#include <pipe/backend/cuda/rows/resample.hpp>
#include <pipe/backend/cuda/rows/response_norm.hpp>
#include <pipe/backend/cuda/matmul/matmul_choice.hpp>
#include <pipe/backend/cuda/rows/row_products.hpp>
#include <pipe/backend/cuda/rows/rowwise.hpp>
#include <pipe/backend/cuda/rows/slopes.hpp>
#include <pipe/backend/cuda/rows/sort_lowering.hpp>
#include <pipe/backend/dispatch.hpp>
#include <pipe/base/bytes.hpp>

namespace pp::cuda {

static_assert(detail::has_kernels<kernel_of>());

/// The kernels of group G of pipeline P.
template <class P, int G>
using lowered = typename kernel_of<group_of<P, G>::value.anchor>::template list<P, G>;

/// Chain C of pipeline P, as a constant for device code.
template <class P, int C>
struct chain_of {
  static constexpr detail::chain_kernel value = P::chain_kernels()[C];
};
/// The kernel of a chain of launches: of a norm's gradients, or of narrow layers. Constant: a type
/// whose `value` is the chain_kernel.
template <class P, class Constant>
constexpr auto lower_chain() {
  constexpr detail::chain_kernel k = Constant::value;
  if constexpr (group_of<P, k.groups[0]>::value.anchor == op_kind::norm_parameter_gradient)
    return norm_gradients<P, k.groups[0], k.groups[1]>{};
  else
    return lowered_narrow_chain<P, Constant>{};
}
template <class P, class Constant>
using lowered_chain = decltype(lower_chain<P, Constant>());
/// The kernel of chain C of compiled pipeline P.
template <class P, int C>
using chain_kernels = lowered_chain<source_of<P>, chain_of<P, C>>;

/// The kernels of group G under a policy of products.
template <class P, int G, detail::product_policy Policy>
constexpr auto kernels_under() {
  if constexpr (policy_of<P, G, Policy>() == detail::product_policy::wgmma) {
    if constexpr (suits_wgmma<P, G>())
      return lower_wgmma<P, G>();
    else
      return lowered<P, G>{};
  } else {
    return lowered<P, G>{};
  }
}

/// Bytes of workspace of group G: enough for cuBLASLt, and for the library's own kernels where
/// cuBLASLt is not loaded.
template <class P, int G, detail::product_policy Policy>
constexpr long workspace_of() {
  long needed = workspace_of(kernels_under<P, G, Policy>());
  if constexpr (detail::may_call_cublaslt(policy_of<P, G, Policy>()))
    if (blas_lowering<P, G>::workspace_bytes > needed)
      needed = blas_lowering<P, G>::workspace_bytes;
  return needed;
}

/// Bytes of workspace of a compiled pipeline: the maximum over its groups and its chains.
template <class P>
constexpr long workspace_bytes() {
  return
      []<int... G, int... C>(std::integer_sequence<int, G...>, std::integer_sequence<int, C...>) {
        long most = 0;
        for (long const needed :
             {0L, workspace_of<source_of<P>, G, P::products>()...,
              sort_workspace_of<source_of<P>, G, typename P::row_sort>()...,
              attention_workspace_of<source_of<P>, G, typename P::attention_library>()...,
              chain_kernels<P, C>::workspace_bytes...})
          if (needed > most) most = needed;
        return detail::align_up(most);
      }(std::make_integer_sequence<int, P::groups>{},
        std::make_integer_sequence<int, P::chain_kernels().count>{});
}

}  // namespace pp::cuda
