// SPDX-License-Identifier: BSL-1.0
//
// How a kernel is measured: on random numbers, by events, as the median of many runs; and a kernel group alone, without a model.
#pragma once

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include <pipe/base/half.hpp>
#include <pipe/pipe.hpp>

namespace bench {

using pp::cuda::check;
using pp::cuda::device_buffer;

/// A pipeline that has one kernel group, Described::make(), on numbers of type T in memory.
template <class T, class Described>
struct alone {
  using element = T;
  using leaves = typename Described::leaves;
  static constexpr int samples = 1;
  static constexpr pp::group group_at(int) { return Described::make(); }
};

template <class T>
constexpr char const* name_of() {
  return sizeof(T) == 4 ? "fp32" : std::is_same_v<T, pp::bf16> ? "bf16" : "fp16";
}

template <class T>
static __global__ void fill_randomly(T* to, long count, std::uint64_t seed, float scale) {
  for (long i = blockIdx.x * long(blockDim.x) + threadIdx.x; i < count; i += long(gridDim.x) * blockDim.x)
    to[i] = T(scale * (2 * pp::unit_uniform(pp::random_block(seed, 1, std::uint64_t(i)).word[0]) - 1));
}

/// Numbers in (-scale, scale).
template <class T>
device_buffer random_numbers(long count, std::uint64_t seed, float scale = 1) {
  device_buffer b(count * long(sizeof(T)));
  fill_randomly<<<1024, 256>>>(b.as<T>(), count, seed, scale);
  check(cudaDeviceSynchronize(), "random numbers");
  return b;
}

/// Median microseconds of f(), which enqueues on `on`: each run is between two events.
template <class F>
double microseconds(F f, cudaStream_t on = nullptr, int runs = 31) {
  pp::cuda::event begin(true), end(true);
  std::vector<float> all;
  for (int i = -3; i < runs; ++i) {  // the first ones load code
    check(cudaEventRecord(begin, on), "an event");
    f();
    check(cudaEventRecord(end, on), "an event");
    check(cudaEventSynchronize(end), "a measured kernel");
    float ms = 0;
    check(cudaEventElapsedTime(&ms, begin, end), "time between events");
    if (i >= 0) all.push_back(ms);
  }
  std::sort(all.begin(), all.end());
  return 1e3 * double(all[all.size() / 2]);
}

/// Microseconds of the kernels of P's group, which read and write `slots`.
template <class P>
double microseconds_of_group(std::initializer_list<void*> slots, pp::cuda::arguments a = {}) {
  using kernels = pp::cuda::lowered<P, 0>;
  pp::cuda::prepare_bodies(kernels{});
  device_buffer const workspace(pp::cuda::workspace_of(kernels{}));
  std::copy(slots.begin(), slots.end(), a.slot);
  a.workspace = workspace.data();
  return microseconds([&] { pp::cuda::launch_bodies(kernels{}, a, nullptr); });
}

inline void figure(std::string const& name, double value, int digits = 3) {
  std::printf("figure %s %.*f\n", name.c_str(), digits, value);
}

/// Runs a program; what is wrong is a sentence and a 2.
template <class F>
int run(char const* name, F f) {
  try {
    cudaDeviceProp const device = pp::cuda::use_device(0);
    std::printf("%s on %s\n", name, device.name);
    f();
    return 0;
  } catch (pp::error const& e) {
    std::fprintf(stderr, "%s: %s\n", name, e.what());
    return 2;
  }
}

}  // namespace bench
