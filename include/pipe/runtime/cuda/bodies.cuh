// SPDX-License-Identifier: BSL-1.0
//
// Lists of kernel bodies on a device: made ready once, launched one after the other.
#pragma once

#include <pipe/backend/cuda/block/kernel_list.hpp>
#include <pipe/backend/cuda/block/launch.cuh>

namespace pp::cuda {

template <class... Body>
void launch_bodies(bodies<Body...>, [[maybe_unused]] arguments const& a,
                   [[maybe_unused]] cudaStream_t stream) {
  (launch_body<Body>(a, stream), ...);
}

/// Before the first launch of any of them: see prepare_body.
template <class... Body>
void prepare_bodies(bodies<Body...>) {
  (prepare_body<Body>(), ...);
}

}  // namespace pp::cuda
