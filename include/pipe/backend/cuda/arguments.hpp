// SPDX-License-Identifier: BSL-1.0
//
// What a CUDA kernel is called with: a plain struct that travels as a kernel parameter. Everything
// else a kernel needs to know is a constant of the kernel group it was made for.
#pragma once

#include <cstddef>
#include <cstdint>

#include <pipe/base/dtype.hpp>
#include <pipe/passes/group.hpp>

namespace pp::cuda {

using extent = std::ptrdiff_t;

/// One launch on one micro-batch. Pointers are to the device's memory.
struct arguments {
  void* slot[group::max_slots]{};  ///< operands, as the group numbers them
  void* workspace = nullptr;       ///< of workspace_bytes(group, samples), or more
  double* loss = nullptr;          ///< a loss kernel writes each row's loss here
  double loss_scale =
      0;  ///< of the gradient: one over the number of terms in the mini-batch's mean
  float const* scaling =
      nullptr;  ///< and what it is multiplied by besides, in the device's memory; null: 1
  std::uint64_t seed = 0;  ///< of random bits, which depend on what follows besides
  long step = 0;           ///< of training, from 1
  long first_sample = 0;   ///< of the micro-batch, in the mini-batch
  int valid_samples =
      1 << 30;        ///< a loss kernel: samples from this one on are absent, loss 0 and gradient 0
  unsigned zero = 0;  ///< 0, which no compiler knows: see seal
  bool accumulate = false;     ///< weight gradients: add to what is there, or overwrite it
  bool training = false;       ///< else nothing is dropped
  bool wants_gradient = true;  ///< a loss kernel: training, not evaluation

  template <class T>
  PIPE_HD T* at(int i) const {
    return static_cast<T*>(slot[i]);
  }
  /// Null for a slot of -1.
  template <class T>
  PIPE_HD T* maybe(int i) const {
    return i < 0 ? nullptr : static_cast<T*>(slot[i]);
  }
  PIPE_HD int const* ids(int i) const { return static_cast<int const*>(slot[i]); }
};

/// What the kernels of a pipeline depend on, and no more: pipelines that differ in their schedule
/// or their optimizer share kernels.
template <class Passes, class T, dtype Product>
struct kernel_source {
  using element = T;  ///< of values
  static constexpr dtype product = Product;
  using leaves = typename Passes::model::leaves;
  static constexpr int samples = Passes::samples, groups = Passes::groups;
  static constexpr group group_at(int g) { return Passes::group_at(g); }
};
/// Of a compiled pipeline.
template <class P>
using source_of = kernel_source<typename P::passes, typename P::value, P::precision::product>;

/// Group G of pipeline P, as a constant that device code may copy: `constexpr group g = group_of<P,
/// G>::value;`
template <class P, int G>
struct group_of {
  static constexpr group value = P::group_at(G);
};

}  // namespace pp::cuda
