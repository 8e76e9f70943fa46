// SPDX-License-Identifier: BSL-1.0
//
// What a host kernel is called with. Everything else it needs to know is a constant of the kernel group it was made for.
#pragma once

#include <pipe/passes/group.hpp>

namespace pp::host {

/// One launch on one micro-batch.
template <class T>
struct arguments {
  void* slot[group::max_slots]{};  ///< operands, as the group numbers them
  void* workspace = nullptr;       ///< of workspace_bytes(group) or more
  double* loss = nullptr;          ///< a loss kernel writes the sum over its rows here
  T loss_scale{};                  ///< of the gradient: one over the number of terms in the mini-batch's mean
  bool accumulate = false;         ///< weight gradients: add to what is there, or overwrite it
  int valid_samples = 1 << 30;     ///< a loss kernel: samples from this one on are absent, loss 0 and gradient 0
  bool wants_gradient = true;      ///< a loss kernel: training, not evaluation

  T* at(int i) const { return static_cast<T*>(slot[i]); }
  int const* ids(int i) const { return static_cast<int const*>(slot[i]); }
};

template <class T>
using kernel = void (*)(arguments<T> const&);

}  // namespace pp::host
