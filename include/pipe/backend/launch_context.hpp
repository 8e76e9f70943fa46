// SPDX-License-Identifier: BSL-1.0
//
// The arguments of a kernel launch on every backend. All else that a kernel needs is a constant of
// its kernel group.
#pragma once

#include <cstdint>

#include <pipe/backend/segments.hpp>
#include <pipe/passes/group.hpp>

namespace pp::detail {

/// One launch on one micro-batch; equal in every run with the same number of samples. Pointers are
/// to the memory of the backend.
struct launch_context {
  void* operand[group::max_operands]{};  ///< by index in the group's list
  void* workspace = nullptr;             ///< at least as many bytes as the group needs
  double* loss = nullptr;                ///< a loss kernel writes each row's loss here
  /// Of a launch on rows of an axis, in a pipeline with Lengths; else null.
  segment_list const* segments = nullptr;
  segment_list const* key_segments = nullptr;  ///< of the keys of an attention to another sequence
  /// The number of samples that are present: a loss kernel gives the others loss 0 and gradient 0.
  int valid_samples = 1 << 30;
  bool accumulate = false;  ///< weight gradients: add to the memory's contents, or overwrite them
  bool training = false;    ///< false: dropout drops nothing
  bool wants_gradient = true;  ///< of a loss kernel: true in training, false in evaluation
};

/// The counters of random bits, besides the layer and the element; they change in every step.
struct random_context {
  std::uint64_t seed = 0;
  long step = 0;          ///< the training step, from 1
  long first_sample = 0;  ///< index in the mini-batch of the micro-batch's first sample
};

}  // namespace pp::detail
