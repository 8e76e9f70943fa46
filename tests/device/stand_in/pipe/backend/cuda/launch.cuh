// SPDX-License-Identifier: BSL-1.0
//
// Stands in for the library's header of this name: a launch runs the kernel's body on the CPU when its stream comes to it, one thread after
// the other or all of them at once.
#pragma once

#include <cuda_runtime.h>

#include <pipe/backend/cuda/check.cuh>
#include <pipe/backend/cuda/host_block.hpp>

#include "device/threaded_block.hpp"

namespace fake_gpu {

inline bool uses_threads = false;

}  // namespace fake_gpu

namespace pp::cuda {

template <class Body>
void launch_body(arguments const& a, cudaStream_t stream) {
  stream->tasks.push_back({[a] {
    if (fake_gpu::uses_threads)
      on_host::run_on_threads<Body>(a, Body::blocks);
    else
      run_on_host<Body>(a);
  }});
}
template <class Body>
  requires requires { typename Body::kernels; }
void launch_body(arguments const& a, cudaStream_t stream) {
  Body::launch(a, stream);
}
template <class Body>
  requires requires { typename Body::arguments; }
void launch_body(typename Body::arguments const& a, cudaStream_t stream) {
  stream->tasks.push_back({[a] {
    if (fake_gpu::uses_threads)
      on_host::run_on_threads<Body>(a, Body::blocks(a));
    else
      run_on_host<Body>(a);
  }});
}
template <class Body>
void prepare_body() {}

}  // namespace pp::cuda
