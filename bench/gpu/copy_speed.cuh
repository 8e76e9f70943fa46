// SPDX-License-Identifier: BSL-1.0
//
// What memory gives: the measure of kernels that it limits.
#pragma once

#include "measure.cuh"

namespace bench {

/// Sixteen bytes a thread and turn.
static __global__ void copy_kernel(uint4* to, uint4 const* from, long count) {
  for (long i = blockIdx.x * long(blockDim.x) + threadIdx.x; i < count;
       i += long(gridDim.x) * blockDim.x)
    to[i] = from[i];
}

/// Gigabytes per second, read and written, of the faster of a kernel and the driver's own copy.
inline double copy_speed() {
  constexpr long bytes = 1L << 31;
  auto const from = random_numbers<float>(bytes / 4, 1);
  device_buffer to(bytes);
  double const ours = microseconds([&](cudaStream_t on) {
    copy_kernel<<<16384, 256, 0, on>>>(to.as<uint4>(), from.as<uint4>(), bytes / 16);
    check(cudaGetLastError(), "a copy");
  });
  double const driver = microseconds([&](cudaStream_t on) {
    check(cudaMemcpyAsync(to.data(), from.data(), std::size_t(bytes), cudaMemcpyDeviceToDevice, on),
          "a copy");
  });
  return 2e-3 * double(bytes) / std::min(ours, driver);
}

}  // namespace bench
