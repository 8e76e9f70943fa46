// SPDX-License-Identifier: BSL-1.0
//
// Selection of a GPU, and the check that the program has code for it.
#pragma once

#include <pipe/backend/cuda/block/check.cuh>
#include <pipe/runtime/cuda/capability.hpp>

namespace pp::cuda {

/// Lowest compute capability that this file was compiled for, as 10 * major + minor; 0 if unknown.
inline int least_compiled() {
#ifdef __CUDA_ARCH_LIST__
  int least = 1 << 30;
  for (int arch : {__CUDA_ARCH_LIST__}) least = arch < least ? arch : least;
  // The list has numbers such as 800 for sm_80.
  return least / 10;
#else
  return 0;
#endif
}

/// Empty kernel. A query of its attributes shows whether the current device can run this file's
/// code.
///
/// shape: no operands; never launched
static __global__ void any_kernel() {}

/// Whether the driver finds code in the program for the current device.
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

/// Makes device `index` current and returns its properties.
///
/// throws: pp::error "no CUDA device", or that the program has no code for the device, naming both
[[gnu::cold]] inline cudaDeviceProp use_device(int index) {
  int count = 0;
  cudaError_t const status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess) cudaGetLastError();
  // A machine without a device is an answer, not a failure of the query.
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

/// The latest version of CUDA that the driver supports, as 1000 * major + 10 * minor.
inline int driver_version() {
  int version = 0;
  check(cudaDriverGetVersion(&version), "version of the driver");
  return version;
}

}  // namespace pp::cuda
