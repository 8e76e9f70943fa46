// SPDX-License-Identifier: BSL-1.0
//
// The engine for a GPU, all of it but the hardware: its machine, its streams and events, its
// kernels' bodies, on the CPU.
#pragma once

#include <catch2/catch.hpp>
#include <cuda_runtime.h>

#include <pipe/pipe.hpp>
#include <pipe/runtime/cuda/engine.cuh>

namespace on_host {

/// The option that takes the place of Cuda.
struct Device {
  static constexpr char const* name = "cuda on the host";
  template <class P>
  using engine = pp::cuda_engine<P>;
  template <class Precision>
  static constexpr bool computes_in = pp::Cuda::computes_in<Precision>;
  static constexpr int parts_for(pp::group const&, int, int) { return 1; }
  template <class P>
  static constexpr long workspace_bytes() {
    return pp::Cuda::workspace_bytes<P>();
  }
  template <class Chunk>
  static constexpr long book_bytes(Chunk const* chunks, int chunk_count, int rank, int parameters,
                                   int streams) {
    return pp::Cuda::book_bytes(chunks, chunk_count, rank, parameters, streams);
  }
  template <class T>
  static constexpr long contraction_elements(long, long, long) {
    return 0;
  }
};

}  // namespace on_host
