// SPDX-License-Identifier: BSL-1.0
//
// The facts of a pipeline that its host kernels are instantiated on.
#pragma once

#include <pipe/passes/group.hpp>

namespace pp::host {

/// The part of a pipeline that its kernels are instantiated on, and no more: pipelines of one model
/// that differ in their schedule or their optimizer share kernels, of every instruction set.
template <class Fused, class T>
struct kernel_source {
  using element = T;  ///< of values, gradients and parameters
  using leaves = typename Fused::model::leaves;
  static constexpr int samples = Fused::samples, groups = Fused::groups;
  static constexpr detail::group group_at(int g) { return Fused::group_at(g); }
};
/// Group G of program P, where a function reads it at run time: one object for all instruction
/// sets.
template <class P, int G>
inline constexpr detail::group group_in = P::group_at(G);

/// Of a compiled pipeline.
template <class P>
using source_of = kernel_source<typename P::passes::fused, typename P::element>;

}  // namespace pp::host
