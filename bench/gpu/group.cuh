// SPDX-License-Identifier: BSL-1.0
//
// A kernel group alone, without a model.
#pragma once

#include <pipe/pipe.hpp>

#include "measure.cuh"

namespace bench {

/// A pipeline that has one kernel group, Described::make(), on numbers of type T in memory.
template <class T, class Described>
struct alone {
  using element = T;
  using leaves = typename Described::leaves;
  static constexpr int samples = 1;
  static constexpr pp::detail::group group_at(int) { return Described::make(); }
};

/// Microseconds of the kernels of P's group, which read and write `slots`.
template <class P>
double microseconds_of_group(std::initializer_list<void*> slots, pp::cuda::arguments a = {}) {
  using kernels = pp::cuda::lowered<P, 0>;
  pp::cuda::prepare_kernels(kernels{});
  device_buffer const workspace(pp::cuda::workspace_of(kernels{}));
  std::copy(slots.begin(), slots.end(), a.slot);
  a.workspace = workspace.data();
  return microseconds([&](cudaStream_t on) { pp::cuda::launch_kernels(kernels{}, a, on); });
}

}  // namespace bench
