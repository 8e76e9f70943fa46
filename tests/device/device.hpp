// SPDX-License-Identifier: BSL-1.0
//
// The engine for a GPU, all of it but the hardware: its executor, its streams and events, its
// kernels' bodies, on the CPU.
#pragma once

#include "catch.hpp"
#include <cuda_runtime.h>

#include <pipe/pipe.hpp>
#include <pipe/runtime/cuda/engine.cuh>

namespace on_host {

/// The option that takes the place of Cuda.
struct Device {
  static constexpr char const* name = "cuda on the host";
  static constexpr bool has_own_memory = true, has_transposes = pp::Cuda::has_transposes;
  template <class Precision, class Products>
  using chains = pp::Cuda::chains<Precision, Products>;
  static constexpr int parts_for(pp::detail::group const&, int, int) { return 1; }
  template <class T>
  static constexpr long contraction_elements(long, long, long) {
    return 0;
  }
  /// Where the device is the host there is nothing to refuse.
  template <class Chosen>
  static constexpr auto diagnose() {
    return std::type_identity<pp::detail::nothing_wrong>{};
  }
  template <class M, class Chosen>
  static constexpr auto diagnose_model() {
    return std::type_identity<pp::detail::nothing_wrong>{};
  }
};

/// Every launch on its own.
struct DeviceWithoutChains : Device {
  template <class Precision, class Products>
  using chains = pp::detail::no_chains;
};

}  // namespace on_host

template <>
struct pp::detail::runtime_of<on_host::Device> : pp::detail::runtime_of<pp::Cuda> {};
template <>
struct pp::detail::runtime_of<on_host::DeviceWithoutChains> : pp::detail::runtime_of<pp::Cuda> {};
