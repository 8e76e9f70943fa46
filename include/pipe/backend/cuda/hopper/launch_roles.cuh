// SPDX-License-Identifier: BSL-1.0
//
// Kernel bodies with roles on the device: a launch encodes the maps of the matrices that a body
// copies, and passes them as a parameter.
#pragma once

#include <pipe/backend/cuda/core/launch.cuh>
#include <pipe/backend/cuda/hopper/encode_map.cuh>
#include <pipe/backend/cuda/hopper/roles.hpp>

namespace pp::cuda {

/// The parameter of a kernel with roles.
template <class Body>
struct mapped_arguments {
  typename Body::launch_arguments arguments;
  operand_maps<encoded_map> maps;
};

/// The entry point of a body with roles.
///
/// shape: the body's operands; Body::blocks(arguments) blocks of Body::threads threads
/// needs: code for sm_90a, the only architecture with wgmma and setmaxnreg
template <class Body>
static __global__ void __launch_bounds__(Body::threads, 1)
    run_roles(__grid_constant__ const mapped_arguments<Body> a) {
  require_ieee_arithmetic();
  follow();
  extern __shared__ __align__(1024) unsigned char memory_of_roles[];
  device_block<Body> block(*reinterpret_cast<typename Body::shared*>(memory_of_roles));
  Body::run(block, a.arguments, a.maps);
}

template <class Body>
concept body_with_roles = requires { typename Body::launch_arguments; };

/// Loads the kernel of a body with roles: see prepare_body in core/launch.cuh.
///
/// throws: pp::error if the program has no code for the device, or the device has too little shared
///         memory
template <body_with_roles Body>
void prepare_body() {
  cudaFuncAttributes code{};
  check(cudaFuncGetAttributes(&code, run_roles<Body>), "code of a kernel for sm_90a");
  starts_early<Body> = true;
  check(cudaFuncSetAttribute(run_roles<Body>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             int(shared_bytes<Body>)),
        "shared memory of a kernel");
}

/// Launches a body with roles on a stream.
///
/// throws: pp::error if a map is refused or the launch fails
template <body_with_roles Body>
void launch_roles(typename Body::launch_arguments const& a, cudaStream_t stream) {
  operand_maps<tensor_map> const maps = Body::maps(a);
  mapped_arguments<Body> const all{a, {encode(maps.left), encode(maps.right)}};
  launch_kernel(reinterpret_cast<void const*>(run_roles<Body>), &all, Body::blocks(a),
                Body::threads, shared_bytes<Body>, starts_early<Body>, stream);
}
template <body_with_roles Body>
void launch_body(arguments const& a, cudaStream_t stream) {
  launch_roles<Body>(a, stream);
}

}  // namespace pp::cuda
