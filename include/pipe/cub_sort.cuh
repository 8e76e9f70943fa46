// SPDX-License-Identifier: BSL-1.0
//
// CUB's radix sort behind the gradients of embeddings: an option for programs that nvcc compiles.
// The only header that needs CUB, which comes with CUDA; not part of <pipe/pipe.hpp>.
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#ifdef __CUDACC__

#include <cstddef>

#include <cub/device/device_radix_sort.cuh>

#include <pipe/backend/cuda/core/check.cuh>
#include <pipe/backend/cuda/rows/sort_lowering.hpp>

namespace pp {

namespace cuda {

/// A stable sort by cub::DeviceRadixSort: its launches depend on the shape alone, so they can be
/// captured.
struct cub_sort {
  static constexpr char const* name = "CUB";
  /// Nodes of a graph that a sort is: two tables are cleared, a histogram, its sums, and a pass for
  /// each 8 bits behind a third table that is cleared.
  static constexpr int nodes(int bits) { return 4 + 2 * ((bits + 7) / 8); }

  /// Bytes of temporary memory that CUB asks for.
  ///
  /// throws: pp::error if CUB refuses
  static std::size_t temporary_bytes(int rows, int bits) {
    sort_call c;
    c.rows = rows, c.bits = bits;
    return run(c, nullptr);
  }
  /// throws: pp::error if a launch fails
  static void enqueue(sort_call const& c, cudaStream_t stream) { run(c, stream); }

 private:
  /// Without temporary memory CUB only says how much it needs. Keys are compared as unsigned
  /// numbers: one transformation of the sign less.
  static std::size_t run(sort_call const& c, cudaStream_t stream) {
    std::size_t bytes = c.temporary_bytes;
    check(cub::DeviceRadixSort::SortPairs(c.temporary, bytes,
                                          reinterpret_cast<unsigned const*>(c.keys),
                                          reinterpret_cast<unsigned*>(c.sorted_keys), c.values,
                                          c.sorted_values, c.rows, 0, c.bits, stream),
          "a sort by CUB");
    return bytes;
  }
};

}  // namespace cuda

/// Ids are sorted by CUB's radix sort. It changes no bit. Has no effect on a host.
struct CubSort {
  using row_sort = cuda::cub_sort;
};

}  // namespace pp

#endif
