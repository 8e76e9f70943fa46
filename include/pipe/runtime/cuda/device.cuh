// SPDX-License-Identifier: BSL-1.0
//
// Selection of the GPUs of a trainer, and the check that the program has code for them.
#pragma once

#include <utility>
#include <vector>

#include <pipe/backend/cuda/core/check.cuh>
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

/// An empty kernel, whose attributes show whether the current device can run the code of this file.
///
/// shape: no operands; never launched
static __global__ void any_kernel() {}

/// Whether the driver finds code in the program for the current device.
inline bool has_code_for_current_device() {
  cudaFuncAttributes unused{};
  cudaError_t const status = cudaFuncGetAttributes(&unused, any_kernel);
  if (status == cudaErrorNoKernelImageForDevice || status == cudaErrorInvalidDeviceFunction) {
    cudaGetLastError();  // clears the error, so that no later check reports it
    return false;
  }
  check(status, "code for the device");
  return true;
}

inline device_and_code description_of(cudaDeviceProp const& of, int index) {
  return {index, of.name, 10 * of.major + of.minor, least_compiled(), true, of.multiProcessorCount};
}

/// Makes device `index` current and returns its properties.
///
/// throws: pp::error "no CUDA device", or if the program has no code for the device, naming both
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
  device_and_code d = description_of(of, index);
  check_there_is_code(d);
  check(cudaSetDevice(index), "choice of the device");
  d.has_code = has_code_for_current_device();
  check_there_is_code(d);
  return of;
}

/// A scope that restores the calling thread's current device at its end. Without a device it does
/// nothing.
class device_scope {
 public:
  device_scope() {
    if (cudaGetDevice(&before_) == cudaSuccess) return;
    cudaGetLastError();
    before_ = -1;
  }
  /// A scope in which `device` is current.
  explicit device_scope(int device) : device_scope() {
    check(cudaSetDevice(device), "choice of the device");
  }
  device_scope(device_scope const&) = delete;
  device_scope& operator=(device_scope const&) = delete;
  ~device_scope() {
    if (before_ >= 0) (void)cudaSetDevice(before_);
  }

 private:
  int before_ = 0;
};

/// The GPUs of a trainer.
struct device_list {
  std::vector<int> numbers;  ///< for the CUDA runtime; the first is current
  cudaDeviceProp properties{};
  bool are_peers = true;  ///< each device reaches the memory of the others
};

/// Lets the current device `to` reach the memory of device `from`, if the hardware can; returns
/// whether it can. Copies between the two then need not go through the host.
[[gnu::cold]] inline bool reach(int to, int from) {
  int can = 0;
  check(cudaDeviceCanAccessPeer(&can, to, from), "query of a peer");
  if (can == 0) return false;
  cudaError_t const status = cudaDeviceEnablePeerAccess(from, 0);
  if (status == cudaErrorPeerAccessAlreadyEnabled)
    cudaGetLastError();  // clears the error
  else
    check(status, "access to a peer");
  return true;
}

/// Prepares devices first to first + count - 1 for one trainer.
///
/// law:    the devices are alike, so that no bit depends on which of them computes
/// throws: pp::error as use_device does, or if two devices differ, naming both
[[gnu::cold]] inline device_list use_devices(int first, int count) {
  device_list all;
  for (int k = first + count - 1; k >= first; --k) {
    cudaDeviceProp const of = use_device(k);
    if (k < first + count - 1)
      check_are_alike(description_of(of, k), description_of(all.properties, k + 1));
    all.properties = of;
    for (int other = first; other < first + count; ++other)
      if (other != k) all.are_peers = reach(k, other) && all.are_peers;
  }
  for (int k = 0; k < count; ++k) all.numbers.push_back(first + k);
  return all;
}

/// The latest version of CUDA that the driver supports, as 1000 * major + 10 * minor.
inline int driver_version() {
  int version = 0;
  check(cudaDriverGetVersion(&version), "version of the driver");
  return version;
}

}  // namespace pp::cuda
