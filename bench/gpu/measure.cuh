// SPDX-License-Identifier: BSL-1.0
//
// How work on a GPU is measured: on random numbers, by events, as the median of many replays of a
// graph.
#pragma once

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include <pipe/backend/cuda/core/check.cuh>
#include <pipe/base/half.hpp>
#include <pipe/base/philox.hpp>
#include <pipe/runtime/cuda/device.cuh>
#include <pipe/runtime/cuda/resources.cuh>

namespace bench {

using pp::cuda::check;
using pp::cuda::device_buffer;

template <class T>
constexpr char const* name_of() {
  return sizeof(T) == 4 ? "fp32" : std::is_same_v<T, pp::bf16> ? "bf16" : "fp16";
}

template <class T>
static __global__ void fill_randomly(T* to, long count, std::uint64_t seed, float scale) {
  for (long i = blockIdx.x * long(blockDim.x) + threadIdx.x; i < count;
       i += long(gridDim.x) * blockDim.x)
    to[i] =
        T(scale *
          (2 * pp::math::unit_uniform(pp::math::random_block(seed, 1, std::uint64_t(i)).word[0]) -
           1));
}

/// Numbers in (-scale, scale).
template <class T>
device_buffer random_numbers(long count, std::uint64_t seed, float scale = 1) {
  device_buffer b(count * long(sizeof(T)));
  fill_randomly<<<1024, 256>>>(b.as<T>(), count, seed, scale);
  check(cudaDeviceSynchronize(), "random numbers");
  return b;
}

/// What a stream was given between two calls, as one launch.
class graph {
 public:
  /// f(stream), `times` times.
  template <class F>
  graph(F const& f, int times, cudaStream_t on) {
    cudaGraph_t captured = nullptr;
    check(cudaStreamBeginCapture(on, cudaStreamCaptureModeThreadLocal), "a graph");
    for (int i = 0; i < times; ++i) f(on);
    check(cudaStreamEndCapture(on, &captured), "a graph");
    cudaError_t const status = cudaGraphInstantiate(&program_, captured, 0);
    cudaGraphDestroy(captured);
    check(status, "a graph");
  }
  graph(graph const&) = delete;
  graph& operator=(graph const&) = delete;
  ~graph() { cudaGraphExecDestroy(program_); }
  void launch(cudaStream_t on) const { check(cudaGraphLaunch(program_, on), "a graph"); }

 private:
  cudaGraphExec_t program_ = nullptr;
};

/// Microseconds between two events around f(stream).
template <class F>
double microseconds_once(F const& f, cudaStream_t on) {
  pp::cuda::event const begin(true), end(true);
  check(cudaEventRecord(begin, on), "an event");
  f(on);
  check(cudaEventRecord(end, on), "an event");
  end.wait();
  float ms = 0;
  check(cudaEventElapsedTime(&ms, begin, end), "time between events");
  return 1e3 * double(ms);
}

/// Median microseconds of f(stream), which enqueues: of graphs of up to 20 calls, so that what an
/// event and a launch cost is shared, in about a fifth of a second. Calls before the capture load
/// code, and let libraries set up what they must not inside one.
template <class F>
double microseconds(F const& f) {
  pp::cuda::stream const on;
  f(on);
  double const about = std::max(1.0, std::min(microseconds_once(f, on), microseconds_once(f, on)));
  int const times = int(std::clamp(1e4 / about, 1.0, 20.0)),
            runs = int(std::clamp(2e5 / (about * times), 5.0, 31.0));
  graph const calls(f, times, on);
  std::vector<double> all;
  for (int i = -2; i < runs; ++i) {
    double const us = microseconds_once([&](cudaStream_t s) { calls.launch(s); }, on) / times;
    if (i >= 0) all.push_back(us);
  }
  std::sort(all.begin(), all.end());
  return all[all.size() / 2];
}

/// For bench/gpu.sh. It is out before anything else can go wrong.
inline void figure(std::string const& name, double value, int digits = 3) {
  std::printf("figure %s %.*f\n", name.c_str(), digits, value);
}

/// What is printed is written line by line, to a file too: a program that is stopped has said all
/// that it knew.
inline void print_by_line() { std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ); }

/// Runs a program; what is wrong is a sentence and a 2.
template <class F>
int run(char const* name, F f) {
  print_by_line();
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
