// SPDX-License-Identifier: BSL-1.0
//
// Stands in for the library's header of this name: a launch runs the kernel's body on the CPU when
// its stream comes to it, one thread after the other or, in a program that defines
// FAKE_GPU_HAS_THREADS, all of them at once: bodies for both take twice as long to compile.
#pragma once

#include <cuda_runtime.h>

#include <pipe/backend/cuda/core/check.cuh>
#include "cuda/host_block.hpp"
#ifdef FAKE_GPU_HAS_THREADS
#include "device/threaded_block.hpp"
#endif

namespace fake_gpu {

#ifdef FAKE_GPU_HAS_THREADS
inline bool uses_threads = false;
#endif

/// Whether a kernel's code is on a device: bits.
template <class Body>
inline unsigned is_loaded = 0;

template <class Body, class Arguments>
void run(Arguments const& a, [[maybe_unused]] pp::cuda::extent blocks) {
#ifdef FAKE_GPU_HAS_THREADS
  if (uses_threads) return on_host::run_on_threads<Body>(a, blocks);
#endif
  pp::cuda::run_on_host<Body>(a);
}

/// One function for all bodies: tests have hundreds.
template <class Arguments>
void launch(Arguments const& a, pp::cuda::extent blocks, cudaStream_t stream, unsigned loaded,
            void (*run)(Arguments const&, pp::cuda::extent)) {
  if ((loaded >> stream->device & 1) == 0) throw pp::error("a launch has to load its kernel");
  pp::cuda::check(gpu.answer_current(stream->device), "launch of a kernel");
  pp::cuda::check(gpu.answer_on(stream), "launch of a kernel");
  pp::cuda::check(cudaGetLastError(), "launch of a kernel");
  ++gpu.count.launches;
  stream->put([=] { run(a, blocks); });
}
template <class Body, class Arguments>
void launch(Arguments const& a, pp::cuda::extent blocks, cudaStream_t stream) {
  launch<Arguments>(a, blocks, stream, is_loaded<Body>, &run<Body, Arguments>);
}

}  // namespace fake_gpu

namespace pp::cuda {

template <class Body>
void launch_body(arguments const& a, cudaStream_t stream) {
  fake_gpu::launch<Body>(a, Body::blocks, stream);
}
template <class Body>
  requires requires { typename Body::kernels; }
void launch_body(arguments const& a, cudaStream_t stream) {
  Body::launch(a, stream);
  check(cudaGetLastError(), "launch of a kernel of a Custom layer");
}
template <class Body>
  requires requires { typename Body::arguments; }
void launch_body(typename Body::arguments const& a, cudaStream_t stream) {
  fake_gpu::launch<Body>(a, Body::blocks(a), stream);
}
template <class Body>
void prepare_body() {
  fake_gpu::is_loaded<Body> |= 1u << fake_gpu::current;
}

}  // namespace pp::cuda
