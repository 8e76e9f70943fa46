// SPDX-License-Identifier: BSL-1.0
//
// Whether there is a GPU, and whether the program has code for it.
#pragma once

#include <string>

#include <pipe/backend/cuda/check.cuh>

namespace pp::cuda {

/// A compute capability, 10 * major + minor: 80 for sm_80.
struct capability {
  int number = 0;
};

/// The least that this file was compiled for.
inline capability least_compiled() {
#ifdef __CUDA_ARCH_LIST__
  int least = 1 << 30;
  for (int arch : {__CUDA_ARCH_LIST__}) least = arch < least ? arch : least;
  return {least / 10};
#else
  return {0};
#endif
}

/// Makes device `index` current.
///
/// throws: pp::error "no CUDA device", or that the device is older than the code, naming both
inline cudaDeviceProp use_device(int index) {
  int count = 0;
  cudaError_t const status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess || count == 0) {
    cudaGetLastError();  // so that nobody finds it later
    complain<error>({"no CUDA device", status == cudaSuccess || status == cudaErrorNoDevice ? "" : ": ",
                     status == cudaSuccess || status == cudaErrorNoDevice ? "" : cudaGetErrorString(status)});
  }
  if (index < 0 || index >= count) complain<error>({"no CUDA device ", index, ": there are ", count});
  cudaDeviceProp of{};
  check(cudaGetDeviceProperties(&of, index), "properties of the device");
  int const found = 10 * of.major + of.minor, needed = least_compiled().number;
  if (found < needed)
    complain<error>({"CUDA device ", index, " (", of.name, ") is sm_", found, ", and this program has code for sm_",
                     needed, " and newer"});
  check(cudaSetDevice(index), "choice of the device");
  return of;
}

}  // namespace pp::cuda
