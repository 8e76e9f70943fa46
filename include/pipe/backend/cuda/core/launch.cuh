// SPDX-License-Identifier: BSL-1.0
//
// Kernel bodies on the device: one __global__ function for each, and its launch.
#pragma once

#include <cuda_runtime.h>

#include <pipe/backend/cuda/core/block.hpp>
#include <pipe/backend/cuda/core/check.cuh>
#include <pipe/backend/cuda/core/ieee_arithmetic.cuh>

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

/// The begin of every kernel: waits for the kernels before it, if it was launched before their end,
/// and lets the next one come to the device, which waits in turn. So kernels start sooner one after
/// the other, and what they read and write is as before.
__device__ __forceinline__ void follow() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
  asm volatile("griddepcontrol.launch_dependents;");
#endif
}

/// The entry point of a kernel body of a group. Internal linkage: two files of a program may
/// instantiate the same kernel.
///
/// shape: the body's operands; Body::blocks blocks of Body::threads threads
/// cost:  launch bounds tell the compiler how many registers a thread may have: those of a
///        multiprocessor over threads * resident_of
template <class Body>
static __global__ void __launch_bounds__(Body::threads, resident_of<Body>())
    run_body(arguments const a) {
  require_ieee_arithmetic();
  follow();
  extern __shared__ __align__(16) unsigned char memory[];
  device_block<Body> block(*reinterpret_cast<typename Body::shared*>(memory));
  Body::run(block, a);
}

/// Whether a body's kernel may be launched before those before it end: its code is for sm_90 or
/// later, and begins with follow(). Found when it is prepared.
template <class Body>
inline bool starts_early = false;

/// Launches a kernel with one parameter, `arguments`. is_early: perhaps before those before it end.
///
/// throws: pp::error if the launch fails
inline void launch_kernel(void const* kernel, void const* arguments, extent blocks, int threads,
                          long shared_bytes, bool is_early, cudaStream_t stream) {
  cudaLaunchAttribute overlap{};
  overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  overlap.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim.x = unsigned(blocks);
  config.blockDim.x = unsigned(threads);
  config.dynamicSmemBytes = std::size_t(shared_bytes);
  config.stream = stream;
  config.attrs = &overlap;
  config.numAttrs = is_early ? 1 : 0;
  void* all[] = {const_cast<void*>(arguments)};
  check(cudaLaunchKernelExC(&config, kernel, all), "launch of a kernel");
}

/// Launches a group's kernel on a stream; the number of blocks is a constant of the shape.
///
/// throws: pp::error if the launch fails
template <class Body>
void launch_body(arguments const& a, cudaStream_t stream) {
  static_assert(Body::blocks > 0 && Body::blocks <= 0x7fffffff);
  launch_kernel(reinterpret_cast<void const*>(run_body<Body>), &a, Body::blocks, Body::threads,
                shared_bytes<Body>, starts_early<Body>, stream);
}

/// Calls a user-defined layer, which launches its own kernels on the stream.
///
/// throws: pp::error if one of the launches fails
template <class Body>
  requires requires { typename Body::kernels; }
void launch_body(arguments const& a, cudaStream_t stream) {
  Body::launch(a, stream);
  check(cudaGetLastError(), "launch of a kernel of a Custom layer");
}

/// The entry point of a body with arguments of its own: parameters of a rank, chains of launches.
///
/// shape: the body's operands; Body::blocks(arguments) blocks of Body::threads threads
template <class Body>
static __global__ void __launch_bounds__(Body::threads, resident_of<Body>())
    run_body_of(typename Body::arguments const a) {
  require_ieee_arithmetic();
  follow();
  extern __shared__ __align__(16) unsigned char memory[];
  device_block<Body> block(*reinterpret_cast<typename Body::shared*>(memory));
  Body::run(block, a);
}

/// Launches such a kernel; zero blocks launch nothing.
///
/// throws: pp::error if the launch fails
template <class Body>
  requires requires { typename Body::arguments; }
void launch_body(typename Body::arguments const& a, cudaStream_t stream) {
  extent const blocks = Body::blocks(a);
  if (blocks == 0) return;
  launch_kernel(reinterpret_cast<void const*>(run_body_of<Body>), &a, blocks, Body::threads,
                shared_bytes<Body>, starts_early<Body>, stream);
}

/// Loads a kernel whose blocks have so much shared memory; returns whether its code begins with
/// follow().
///
/// throws: pp::error if the device has no code for it or too little shared memory
[[gnu::cold]] inline bool prepare_kernel(void const* kernel, long shared_bytes) {
  cudaFuncAttributes code{};
  check(cudaFuncGetAttributes(&code, kernel), "code of a kernel");
  if (shared_bytes > usual_shared_bytes)
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               int(shared_bytes)),
          "shared memory of a kernel");
  return code.ptxVersion >= 90;
}

/// Loads a kernel before the first launch, which would otherwise do so in the middle of a run, and
/// asks for its shared memory if that is more than the default. Kernels of a user-defined layer
/// prepare themselves.
///
/// throws: as prepare_kernel
template <class Body>
[[gnu::cold]] void prepare_body() {
  if constexpr (requires { typename Body::arguments; })
    starts_early<Body> =
        prepare_kernel(reinterpret_cast<void const*>(run_body_of<Body>), shared_bytes<Body>);
  else if constexpr (!requires { typename Body::kernels; })
    starts_early<Body> =
        prepare_kernel(reinterpret_cast<void const*>(run_body<Body>), shared_bytes<Body>);
}

}  // namespace pp::cuda
