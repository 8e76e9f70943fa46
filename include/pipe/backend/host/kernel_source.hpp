// SPDX-License-Identifier: BSL-1.0
//
// The part of a pipeline that is the template argument of its host kernels.
#pragma once

#include <type_traits>

#include <pipe/backend/host/sliced_products.hpp>
#include <pipe/backend/segments.hpp>
#include <pipe/base/half.hpp>
#include <pipe/passes/group.hpp>

namespace pp::host {

using detail::block_rows;
template <class P>
inline constexpr bool takes_lengths = detail::has_segments<P>;

/// The template argument of host kernels, with only what kernels read of a pipeline, so that
/// pipelines of one model that differ in schedule or optimizer share the kernels of every
/// instruction set.
template <class Fused, class T, class V = T, int Slices = 0, int Block = 0>
struct kernel_source {
  using element = T;  ///< of gradients of parameters, statistics and labels; kernels compute in it
  using value = V;    ///< of values, their gradients, and what kernels read of parameters
  static constexpr int slices = Slices;       ///< of factors of products: see slices_of
  static constexpr int length_block = Block;  ///< see detail::block_rows
  using leaves = typename Fused::model::leaves;
  static constexpr int samples = Fused::samples, groups = Fused::groups;
  static constexpr detail::group group_at(int g) { return Fused::group_at(g); }
};
/// Group G of P as an object, for functions that read the group at run time: one object for all
/// instruction sets.
template <class P, int G>
inline constexpr detail::group group_in = P::group_at(G);

/// The type of values of pipeline P; that of parameters for a precision that is refused, of which
/// kernels would be further errors.
template <class P>
using value_of =
    std::conditional_t<std::is_same_v<typename P::value, bf16>, bf16, typename P::element>;

/// The kernel_source of compiled pipeline P.
template <class P>
using source_of = kernel_source<typename P::passes::fused, typename P::element, value_of<P>,
                                slices_of<typename P::precision>, block_rows<P>()>;

}  // namespace pp::host
