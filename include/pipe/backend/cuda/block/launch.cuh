// SPDX-License-Identifier: BSL-1.0
//
// Kernel bodies on the device: one __global__ function for each, and its launch.
#pragma once

#include <cuda_runtime.h>

#include <pipe/backend/cuda/block/block.hpp>
#include <pipe/backend/cuda/block/check.cuh>
#include <pipe/backend/cuda/ieee_arithmetic.cuh>

namespace pp::cuda {

/// Shared memory that a block has without asking for more.
inline constexpr int usual_shared_bytes = 48 * 1024;

/// How many blocks of a body a multiprocessor must have registers for, if the body says so:
/// Body::resident; 0 leaves it to the compiler.
template <class Body>
constexpr int resident_of() {
  if constexpr (requires { Body::resident; })
    return Body::resident;
  else
    return 0;
}

/// Internal linkage: two files of a program may instantiate the same kernel.
template <class Body>
static __global__ void __launch_bounds__(Body::threads, resident_of<Body>())
    run_body(arguments const a) {
  require_ieee_arithmetic();
  extern __shared__ __align__(16) unsigned char memory[];
  device_block<Body> block(*reinterpret_cast<typename Body::shared*>(memory));
  Body::run(block, a);
}

template <class Body>
void launch_body(arguments const& a, cudaStream_t stream) {
  static_assert(Body::blocks > 0 && Body::blocks <= 0x7fffffff);
  run_body<Body>
      <<<unsigned(Body::blocks), unsigned(Body::threads), shared_bytes<Body>, stream>>>(a);
  check(cudaGetLastError(), "launch of a kernel");
}

/// What the user launches.
template <class Body>
  requires requires { typename Body::kernels; }
void launch_body(arguments const& a, cudaStream_t stream) {
  Body::launch(a, stream);
  check(cudaGetLastError(), "launch of a kernel of a Custom layer");
}

/// A kernel with arguments of its own, which decide how many blocks it has: none is no launch.
template <class Body>
static __global__ void __launch_bounds__(Body::threads, resident_of<Body>())
    run_body_of(typename Body::arguments const a) {
  require_ieee_arithmetic();
  extern __shared__ __align__(16) unsigned char memory[];
  device_block<Body> block(*reinterpret_cast<typename Body::shared*>(memory));
  Body::run(block, a);
}

template <class Body>
  requires requires { typename Body::arguments; }
void launch_body(typename Body::arguments const& a, cudaStream_t stream) {
  extent const blocks = Body::blocks(a);
  if (blocks == 0) return;
  run_body_of<Body><<<unsigned(blocks), unsigned(Body::threads), shared_bytes<Body>, stream>>>(a);
  check(cudaGetLastError(), "launch of a kernel");
}

/// Before the first launch: loads the kernel, which its first launch would do else, in the middle
/// of a run; and asks for its shared memory if that is more than usual. The kernels of a
/// user-defined layer are its own business.
template <class Body>
void prepare_body() {
  if constexpr (!requires { typename Body::kernels; }) {
    auto const prepare = [](auto* kernel) {
      cudaFuncAttributes unused{};
      check(cudaFuncGetAttributes(&unused, kernel), "code of a kernel");
      if constexpr (shared_bytes < Body >> usual_shared_bytes)
        check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                   int(shared_bytes<Body>)),
              "shared memory of a kernel");
    };
    if constexpr (requires { typename Body::arguments; })
      prepare(run_body_of<Body>);
    else
      prepare(run_body<Body>);
  }
}

}  // namespace pp::cuda
