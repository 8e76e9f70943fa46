// SPDX-License-Identifier: BSL-1.0
//
// Stands in for the library's header of this name: a launch runs the kernel's body on the CPU when its stream comes to it.
#pragma once

#include <cuda_runtime.h>

#include <pipe/backend/cuda/check.cuh>
#include <pipe/backend/cuda/host_block.hpp>

namespace pp::cuda {

template <class Body>
void launch_body(arguments const& a, cudaStream_t stream) {
  stream->tasks.push_back({[a] { run_on_host<Body>(a); }});
}
template <class Body>
  requires requires { typename Body::kernels; }
void launch_body(arguments const& a, cudaStream_t stream) {
  Body::launch(a, stream);
}
template <class Body>
  requires requires { typename Body::arguments; }
void launch_body(typename Body::arguments const& a, cudaStream_t stream) {
  stream->tasks.push_back({[a] { run_on_host<Body>(a); }});
}
template <class Body>
void prepare_body() {}

}  // namespace pp::cuda
