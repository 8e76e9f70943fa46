// SPDX-License-Identifier: BSL-1.0
//
// Convolutions, transposed convolutions and their gradients: products of gathered patches on tensor
// cores, or, if each filter reads one channel, sums over windows.
#pragma once

#include <pipe/backend/cuda/convolution/convolution_tile.hpp>
#include <pipe/backend/cuda/convolution/depthwise.hpp>
#include <pipe/backend/cuda/matmul/contraction.hpp>

namespace pp::cuda {

/// The kernels of a convolution's group, or of its gradient's group, divided by the plan: the
/// kernel of tiles, and the sum of the splits if the tiles do not add the splits.
template <class P, int G, tile_plan Plan = plan_for_convolution<P, G>()>
constexpr auto lower_patches() {
  using tiles = convolution_tiles<P, G, Plan>;
  if constexpr (tiles::split && !tiles::adds_splits)
    return kernel_list<tiles, split_sums_kernel<tiles>>{};
  else
    return kernel_list<tiles>{};
}
template <class P, int G>
constexpr auto lower_convolution() {
  constexpr detail::group g = group_of<P, G>::value;
  if constexpr (!g.attributes.convolution().is_depthwise())
    return lower_patches<P, G>();
  else if constexpr (g.anchor == op_kind::convolution_weight_gradient)
    return lower_depthwise_weight<P, G>();
  else
    return kernel_list<depthwise_kernel<P, G>>{};
}

template <>
struct kernel_of<op_kind::convolution> {
  template <class P, int G>
  using list = decltype(lower_convolution<P, G>());
};
template <>
struct kernel_of<op_kind::convolution_input_gradient> : kernel_of<op_kind::convolution> {};
template <>
struct kernel_of<op_kind::convolution_weight_gradient> : kernel_of<op_kind::convolution> {};

}  // namespace pp::cuda
