// SPDX-License-Identifier: BSL-1.0
//
// Operations on a list of kernel bodies: preparation and launch.
#pragma once

#include <pipe/backend/cuda/core/kernel_list.hpp>
#include <pipe/backend/cuda/core/launch.cuh>

#ifdef __CUDACC__  // a test without nvcc has its own launch of kernels with roles
#include <pipe/backend/cuda/hopper/launch_roles.cuh>
#endif

namespace pp::cuda {

/// Launches the kernels of a list in order, on one stream, with the same arguments.
template <class... Body>
void launch_kernels(kernel_list<Body...>, [[maybe_unused]] arguments const& a,
                    [[maybe_unused]] cudaStream_t stream) {
  (launch_body<Body>(a, stream), ...);
}

/// Prepares the kernels of a list: see prepare_body. Required before their first launch.
template <class... Body>
void prepare_kernels(kernel_list<Body...>) {
  (prepare_body<Body>(), ...);
}

}  // namespace pp::cuda
