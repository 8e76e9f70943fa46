// SPDX-License-Identifier: BSL-1.0
//
// The arguments of a CUDA kernel: a plain struct, passed as the kernel's parameter.
#pragma once

#include <cstddef>
#include <cstdint>

#include <pipe/backend/backend.hpp>
#include <pipe/backend/cuda/core/run_state.hpp>
#include <pipe/backend/launch_context.hpp>
#include <pipe/base/dtype.hpp>
#include <pipe/passes/group.hpp>

namespace pp::cuda {

using extent = std::ptrdiff_t;

/// One launch on one micro-batch.
struct arguments : detail::launch_context {
  run_state const* run = nullptr;  ///< in the device's memory
  int first_sample = 0;            ///< the micro-batch's first, counted from the run's first
  /// A further factor of the gradient of the loss, in the device's memory; null: 1.
  float const* scaling = nullptr;
  unsigned zero = 0;            ///< 0, unknown to the compiler: see seal
  unsigned* tickets = nullptr;  ///< zeros in the device's memory: see tickets.hpp

  template <class T>
  PIPE_HD T* at(int i) const {
    return static_cast<T*>(operand[i]);
  }
  /// Operand i; null for index -1.
  template <class T>
  PIPE_HD T* maybe(int i) const {
    return i < 0 ? nullptr : static_cast<T*>(operand[i]);
  }
  PIPE_HD int const* ids(int i) const { return static_cast<int const*>(operand[i]); }

  /// The workspace of a library's call: from byte `first` of the workspace on, rounded up to a
  /// multiple of `alignment`.
  void* workspace_from(long first, long alignment) const {
    char* const from = static_cast<char*>(workspace) + first;
    long const beyond = long(reinterpret_cast<std::uintptr_t>(from) % std::uintptr_t(alignment));
    return beyond == 0 ? from : from + (alignment - beyond);
  }
};

/// The template argument of kernels, with only what kernels read of a pipeline, so that pipelines
/// that differ in schedule or optimizer share kernels.
template <class Fused, class T, dtype Product, int Reserved = 0, int Block = 0>
struct kernel_source {
  using element = T;  ///< of values
  static constexpr dtype product = Product;
  static constexpr int reserved_multiprocessors = Reserved;
  static constexpr int length_block = Block;  ///< see detail::block_rows
  using leaves = typename Fused::model::leaves;
  static constexpr int samples = Fused::samples, groups = Fused::groups;
  static constexpr detail::group group_at(int g) { return Fused::group_at(g); }
};
/// The kernel_source of compiled pipeline P.
template <class P>
using source_of = kernel_source<typename P::passes::fused, typename P::value, P::precision::product,
                                detail::reserved_multiprocessors<P>(), detail::block_rows<P>()>;

/// Group G of pipeline P, as a constant that device code may copy: `constexpr group g = group_of<P,
/// G>::value;`
template <class P, int G>
struct group_of {
  static constexpr detail::group value = P::group_at(G);
};

}  // namespace pp::cuda
