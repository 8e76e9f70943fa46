// SPDX-License-Identifier: BSL-1.0
//
// The tables of the executor on a GPU: a launch function for each kernel group or chain, and the
// order in which the host enqueues the ranks' actions.
#pragma once

#include <vector>

#include <cuda_runtime.h>

#include <pipe/backend/cuda/core/arguments.hpp>
#include <pipe/runtime/cuda/process_link.cuh>
#include <pipe/runtime/cuda/process_order.hpp>
#include <pipe/runtime/device_blocks.hpp>

namespace pp::detail {

/// Launches the kernels of a group or a chain. `made`: state created at construction, such as a
/// cuBLASLt product; the owner keeps it alive.
struct cuda_group {
  /// Enqueues on the stream and returns. operands: by index in the group; for a chain
  /// those of its groups, one group after the other
  void (*launch)(void const* made, cuda::arguments const&, void* const* operands,
                 cudaStream_t) = nullptr;
  void const* made = nullptr;
  int kernels = 0;  ///< launched by a call; 1 for a user-defined layer
  void operator()(cuda::arguments const& a, void* const* operands, cudaStream_t on) const {
    launch(made, a, operands, on);
  }
};

/// The orders in which the host enqueues training and evaluation.
struct cuda_order {
  std::vector<cuda_entry> training, evaluation;
};

/// The place of an executor's ranks: the devices of this process, their numbers for the CUDA
/// runtime, and the link to other processes, null if there are none.
struct cuda_place {
  local_devices local{};
  std::vector<int> numbers;
  cuda::process_link* processes = nullptr;
};

}  // namespace pp::detail
