// SPDX-License-Identifier: BSL-1.0
//
// Runs kernel bodies: on the CPU, or on the device if nvcc compiles the test. So the same tests
// hold for both. On the device whatever arguments point to comes from operator new, which such a
// program takes from memory that both can reach: bench/gpu/managed_memory.cpp.
#pragma once

#include <pipe/backend/cuda/block/kernel_list.hpp>
#include "cuda/host_block.hpp"
#ifdef __CUDACC__
#include <pipe/backend/cuda/block/launch.cuh>
#endif

namespace on_host {

/// A device chooses its own.
inline pp::cuda::thread_order order = pp::cuda::thread_order::ascending;

#ifdef __CUDACC__

inline void await_kernels() { pp::cuda::check(cudaDeviceSynchronize(), "run of a kernel"); }

template <class Body>
void run_kernel(pp::cuda::arguments const& a, pp::cuda::thread_order = order) {
  pp::cuda::prepare_body<Body>();
  pp::cuda::launch_body<Body>(a, nullptr);
  await_kernels();
}
template <class Body>
  requires requires { typename Body::arguments; }
void run_kernel(typename Body::arguments const& a, pp::cuda::thread_order = order) {
  pp::cuda::launch_body<Body>(a, nullptr);
  await_kernels();
}

#else

template <class Body>
void run_kernel(pp::cuda::arguments const& a, pp::cuda::thread_order in = order) {
  pp::cuda::run_on_host<Body>(a, in);
}
template <class Body>
  requires requires { typename Body::arguments; }
void run_kernel(typename Body::arguments const& a, pp::cuda::thread_order in = order) {
  pp::cuda::run_on_host<Body>(a, in);
}

#endif

template <class... Body>
void run_bodies(pp::cuda::kernel_list<Body...>, pp::cuda::arguments const& a) {
  (run_kernel<Body>(a), ...);
}

}  // namespace on_host
