// SPDX-License-Identifier: BSL-1.0
//
// The tables that the executor on a GPU walks: a launch for each kernel group or chain, and the
// order in which ranks take their actions.
#pragma once

#include <vector>

#include <cuda_runtime.h>

#include <pipe/backend/cuda/arguments.hpp>

namespace pp::detail {

/// Launches the kernels of a group or of a chain on operands, with what was made for it at
/// construction.
struct cuda_group {
  void (*launch)(void const* made, cuda::arguments const&, void* const* slots,
                 cudaStream_t) = nullptr;
  void const* made = nullptr;
  void operator()(cuda::arguments const& a, void* const* slots, cudaStream_t on) const {
    launch(made, a, slots, on);
  }
};

/// Which rank takes its next action: a list for training and one for evaluation.
struct cuda_order {
  std::vector<int> training, evaluation;
};

}  // namespace pp::detail
