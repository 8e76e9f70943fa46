// SPDX-License-Identifier: BSL-1.0
//
// The arguments of a kernel launch that every backend has. Everything else that a kernel needs to
// know is a constant of the kernel group that it was made for.
#pragma once

#include <cstdint>

#include <pipe/passes/group.hpp>

namespace pp::detail {

/// One launch on one micro-batch: the same in every run over as many samples. Pointers are to the
/// memory of the backend.
struct launch_context {
  void* slot[group::max_slots]{};  ///< operands, as the group numbers them
  void* workspace = nullptr;       ///< of the bytes that the group needs, or more
  double* loss = nullptr;          ///< a loss kernel writes each row's loss here
  /// A loss kernel: samples from this one on are absent, loss 0 and gradient 0.
  int valid_samples = 1 << 30;
  bool accumulate = false;     ///< weight gradients: add to what is there, or overwrite it
  bool training = false;       ///< else nothing is dropped
  bool wants_gradient = true;  ///< a loss kernel: training, not evaluation
};

/// What random bits depend on, besides the layer and the element: new in every step.
struct random_context {
  std::uint64_t seed = 0;
  long step = 0;          ///< of training, from 1
  long first_sample = 0;  ///< of the micro-batch, in the mini-batch
};

}  // namespace pp::detail
