// SPDX-License-Identifier: BSL-1.0
//
// From a kernel group to the kernels that compute it, one after the other: the list of families.
#pragma once

#include <pipe/backend/cuda/contraction.hpp>
#include <pipe/backend/cuda/pointwise.hpp>

namespace pp::cuda {

/// Kernels that run one after the other.
template <class... Bodies>
struct bodies {};

template <class P, int G>
constexpr auto lower_group() {
  constexpr op_kind anchor = group_of<P, G>::value.anchor;
  if constexpr (anchor == op_kind::pointwise)
    return bodies<pointwise_kernel<P, G>>{};
  else if constexpr (is_any_of<op_kind::matmul, op_kind::matmul_input_gradient, op_kind::matmul_weight_gradient>(
                         anchor))
    return lower_contraction<P, G>();
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
