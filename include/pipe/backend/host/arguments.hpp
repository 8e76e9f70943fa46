// SPDX-License-Identifier: BSL-1.0
//
// What a host kernel is called with. Everything else it needs to know is a constant of the kernel
// group it was made for.
#pragma once

#include <cstdint>

#include <pipe/base/config.hpp>
#include <pipe/passes/group.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp::host {

/// One launch on one micro-batch, or a thread's part of it.
template <class T>
struct arguments {
  void* slot[group::max_slots]{};  ///< operands, as the group numbers them
  void* workspace =
      nullptr;             ///< of workspace_bytes(group, samples, parts) or more, this part's own
  double* loss = nullptr;  ///< a loss kernel writes each row's loss here
  T loss_scale{};  ///< of the gradient: one over the number of terms in the mini-batch's mean
  bool accumulate = false;  ///< weight gradients: add to what is there, or overwrite it
  int valid_samples =
      1 << 30;  ///< a loss kernel: samples from this one on are absent, loss 0 and gradient 0
  std::uint64_t seed = 0;      ///< of random bits, which depend on what follows besides
  long step = 0;               ///< of training, from 1
  long first_sample = 0;       ///< of the micro-batch, in the mini-batch
  bool training = false;       ///< else nothing is dropped
  bool wants_gradient = true;  ///< a loss kernel: training, not evaluation
  int part = 0, parts = 1;     ///< which of how many parts to do

  T* at(int i) const { return static_cast<T*>(slot[i]); }
  int const* ids(int i) const { return static_cast<int const*>(slot[i]); }
};

template <class T>
using kernel = void (*)(arguments<T> const&);

}  // namespace pp::host
PIPE_OPTIMIZED_END
