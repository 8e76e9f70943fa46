// SPDX-License-Identifier: BSL-1.0
//
// The check of calls of the CUDA runtime: a status other than success becomes a pp::error.
#pragma once

#include <cuda_runtime.h>

#include <pipe/base/error.hpp>
#include <pipe/base/sentence.hpp>

namespace pp::cuda {

/// Throws pp::error, "CUDA, `what`: reason", if `status` is not success.
inline void check(cudaError_t status, char const* what) {
  if (status != cudaSuccess)
    detail::throw_error<error>({"CUDA, ", what, ": ", cudaGetErrorString(status)});
}

}  // namespace pp::cuda
