// SPDX-License-Identifier: BSL-1.0
//
// Kernel bodies on the device: a __global__ function for each body, and its launch.
#pragma once

#include <cuda_runtime.h>

#include <pipe/backend/cuda/core/block.hpp>
#include <pipe/backend/cuda/core/check.cuh>
#include <pipe/backend/cuda/core/ieee_arithmetic.cuh>

namespace pp::cuda {

/// The bytes of shared memory that a block may have without an attribute of the kernel.
inline constexpr int usual_shared_bytes = 48 * 1024;

/// The number of blocks of a body for which a multiprocessor must have registers: Body::resident; 0
/// if the body has no such constant: the compiler chooses.
template <class Body>
constexpr int resident_of() {
  if constexpr (requires { Body::resident; })
    return Body::resident;
  else
    return 0;
}

/// The beginning of every kernel: waits for the end of earlier kernels, if this kernel was launched
/// before their end, and allows the launch of the next kernel, which waits in turn. Kernels start
/// sooner one after the other, and memory accesses keep their order.
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
/// cost:  by its launch bounds, a thread may have the registers of a multiprocessor / (threads *
///        resident_of)
template <class Body>
static __global__ void __launch_bounds__(Body::threads, resident_of<Body>())
    run_body(arguments const a) {
  require_ieee_arithmetic();
  follow();
  extern __shared__ __align__(16) unsigned char memory[];
  device_block<Body> block(*reinterpret_cast<typename Body::shared*>(memory));
  Body::run(block, a);
}

/// Whether a body's kernel may be launched before earlier kernels end: if its code is for sm_90 or
/// later, where follow() waits. Set by prepare_body.
template <class Body>
inline bool starts_early = false;

/// Launches a kernel with one parameter, `arguments`. is_early: it may start before earlier kernels
/// end.
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

/// Launches a group's kernel on a stream; the number of blocks is a constant.
///
/// throws: pp::error if the launch fails
template <class Body>
void launch_body(arguments const& a, cudaStream_t stream) {
  static_assert(Body::blocks > 0 && Body::blocks <= 0x7fffffff);
  launch_kernel(reinterpret_cast<void const*>(run_body<Body>), &a, Body::blocks, Body::threads,
                shared_bytes<Body>, starts_early<Body>, stream);
}

/// Calls a function of a user-defined layer, which launches kernels on the stream.
///
/// throws: pp::error if a launch fails
template <class Body>
  requires requires { typename Body::kernels; }
void launch_body(arguments const& a, cudaStream_t stream) {
  Body::launch(a, stream);
  check(cudaGetLastError(), "launch of a kernel of a Custom layer");
}

/// The entry point of a body with its own type of arguments: kernels over the parameters of a rank,
/// and chains of launches.
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

/// Launches a kernel of a body with its own type of arguments; with zero blocks, launches nothing.
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

/// Loads a kernel whose blocks have `shared_bytes` bytes of shared memory; returns whether its code
/// waits in follow().
///
/// throws: pp::error if the program has no code for the device, or the device has too little shared
///         memory
[[gnu::cold]] inline bool prepare_kernel(void const* kernel, long shared_bytes) {
  cudaFuncAttributes code{};
  check(cudaFuncGetAttributes(&code, kernel), "code of a kernel");
  if (shared_bytes > usual_shared_bytes)
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               int(shared_bytes)),
          "shared memory of a kernel");
  return code.ptxVersion >= 90;
}

/// Loads a kernel, so that its first launch does not do so in the middle of a run, and sets its
/// amount of shared memory if that is above the default. Kernels of a user-defined layer prepare
/// themselves.
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
