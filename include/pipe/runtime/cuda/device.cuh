// SPDX-License-Identifier: BSL-1.0
//
// The check that there is a GPU and that the program has code for it.
#pragma once

#include <pipe/backend/cuda/block/check.cuh>
#include <pipe/runtime/cuda/capability.hpp>

namespace pp::cuda {

/// The least compute capability that this file was compiled for.
inline int least_compiled() {
#ifdef __CUDA_ARCH_LIST__
  int least = 1 << 30;
  for (int arch : {__CUDA_ARCH_LIST__}) least = arch < least ? arch : least;
  return least / 10;
#else
  return 0;
#endif
}

/// Does nothing: asked for, it shows whether the current device runs what this file was compiled
/// to.
static __global__ void any_kernel() {}

inline bool has_code_for_current_device() {
  cudaFuncAttributes unused{};
  cudaError_t const status = cudaFuncGetAttributes(&unused, any_kernel);
  if (status == cudaErrorNoKernelImageForDevice || status == cudaErrorInvalidDeviceFunction) {
    cudaGetLastError();  // clears it, so that no later check reports it
    return false;
  }
  check(status, "code for the device");
  return true;
}

/// Makes device `index` current.
///
/// throws: pp::error "no CUDA device", or that the program has no code for the device, naming both
inline cudaDeviceProp use_device(int index) {
  int count = 0;
  cudaError_t const status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess) cudaGetLastError();
  if (status == cudaErrorNoDevice) count = 0;
  bool const is_answer = status == cudaSuccess || status == cudaErrorNoDevice;
  check_there_is_device(index, count, is_answer ? nullptr : cudaGetErrorString(status));
  cudaDeviceProp of{};
  check(cudaGetDeviceProperties(&of, index), "properties of the device");
  device_and_code d{index, of.name, 10 * of.major + of.minor, least_compiled()};
  check_there_is_code(d);
  check(cudaSetDevice(index), "choice of the device");
  d.has_code = has_code_for_current_device();
  check_there_is_code(d);
  return of;
}

}  // namespace pp::cuda
