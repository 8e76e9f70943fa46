// SPDX-License-Identifier: BSL-1.0
//
// Runs kernel bodies: on the CPU, or on the device if nvcc compiles the test. So the same tests
// hold for both. On the device whatever arguments point to comes from operator new, which such a
// program takes from memory that both can reach: bench/gpu/managed_memory.cpp.
#pragma once

#include <pipe/backend/cuda/core/kernel_list.hpp>
#include <stdexcept>
#include <vector>

#include <pipe/backend/cuda/core/tickets.hpp>

#include "cuda/host_block.hpp"
#ifdef __CUDACC__
#include <pipe/backend/cuda/core/launch.cuh>
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

/// law: no launch leaves tickets that were taken
template <class... Body>
void run_bodies(pp::cuda::kernel_list<Body...>, pp::cuda::arguments const& a) {
  std::vector<unsigned> tickets(std::size_t(pp::cuda::most_tickets), 0);
  [[maybe_unused]] pp::cuda::arguments with = a;
  with.tickets = tickets.data();
  (run_kernel<Body>(with), ...);
  for (unsigned const taken : tickets)
    if (taken != 0) throw std::logic_error("a launch has left tickets");
}

}  // namespace on_host
