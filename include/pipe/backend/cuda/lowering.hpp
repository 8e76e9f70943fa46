// SPDX-License-Identifier: BSL-1.0
//
// From a kernel group to the kernels that compute it, one after the other: the list of families.
#pragma once

#include <pipe/backend/cuda/column_sums.hpp>
#include <pipe/backend/cuda/concat.hpp>
#include <pipe/backend/cuda/gate.hpp>
#include <pipe/backend/cuda/losses.hpp>
#include <pipe/backend/cuda/pointwise.hpp>
#include <pipe/backend/cuda/rowwise.hpp>

namespace pp::cuda {

/// Kernels that run one after the other.
template <class... Bodies>
struct bodies {};

/// Sums over the rows of a source, with a second kernel if there are several chunks.
template <class Source>
constexpr auto column_sums() {
  if constexpr (column_sums_kernel<Source>::finishes)
    return bodies<column_sums_kernel<Source>>{};
  else
    return bodies<column_sums_kernel<Source>, chunk_sums_kernel<Source>>{};
}

template <class P, int G>
constexpr auto lower_group() {
  constexpr op_kind anchor = group_of<P, G>::value.anchor;
  if constexpr (anchor == op_kind::pointwise)
    return bodies<pointwise_kernel<P, G>>{};
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
  else if constexpr (anchor == op_kind::cross_entropy)
    return bodies<cross_entropy_kernel<P, G>>{};
  else if constexpr (anchor == op_kind::squared_error)
    return bodies<element_loss_kernel<P, G, squared_difference>>{};
  else if constexpr (anchor == op_kind::element_loss)
    return bodies<element_loss_kernel<P, G, leaf_at<group_of<P, G>::value.leaf, typename P::leaves>>>{};
  else if constexpr (anchor == op_kind::concat)
    return bodies<concat_kernel<P, G>>{};
  else if constexpr (anchor == op_kind::slice)
    return bodies<slice_kernel<P, G>>{};
  else
    return bodies<>{};
}
/// The kernels of group G of pipeline P.
template <class P, int G>
using lowered = decltype(lower_group<P, G>());

/// Bytes of workspace that the kernels of a group need.
template <class... Body>
constexpr long workspace_of(bodies<Body...>) {
  long most = 0;
  [[maybe_unused]] auto const look = [&]<class B>(B const*) {
    if constexpr (requires { B::workspace_bytes; })
      if (B::workspace_bytes > most) most = B::workspace_bytes;
  };
  (look(static_cast<Body const*>(nullptr)), ...);
  return most;
}

}  // namespace pp::cuda
