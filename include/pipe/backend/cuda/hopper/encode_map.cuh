// SPDX-License-Identifier: BSL-1.0
//
// The encoding of tensor maps for TMA by the driver. The driver's function is found at run time, so
// that programs do not link the driver.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include <pipe/backend/cuda/core/check.cuh>
#include <pipe/backend/cuda/hopper/tensor_map.hpp>

namespace pp::cuda {

namespace driver {

/// The type of cuTensorMapEncodeTiled, from CUDA 12.0 on, with enumerations as numbers.
using encode_tiled = int (*)(void* map, int type, std::uint32_t rank, void* base,
                             std::uint64_t const* extents, std::uint64_t const* strides,
                             std::uint32_t const* box, std::uint32_t const* element_strides,
                             int interleave, int swizzle, int l2_promotion, int fill);

/// The driver's function, found by name.
///
/// throws: pp::error if the driver has no such function
inline encode_tiled find_encode_tiled() {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result{};
#if CUDART_VERSION >= 12050
  check(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault,
                                         &result),
        "cuTensorMapEncodeTiled");
#else
  check(cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &found, cudaEnableDefault, &result),
        "cuTensorMapEncodeTiled");
#endif
  if (result != cudaDriverEntryPointSuccess || found == nullptr)
    detail::throw_error<error>({"CUDA, cuTensorMapEncodeTiled: the driver does not have it"});
  return reinterpret_cast<encode_tiled>(found);
}

}  // namespace driver

/// A map in the format of TMA, for a kernel's parameters. The numbers of types, and of the
/// promotion of reads to 128 bytes in the L2 cache, are from <cuda.h>, which is not included.
///
/// shape: rows x columns of 16-bit numbers, `pitch` bytes from a row to the next
/// throws: pp::error if the driver refuses the map
inline encoded_map encode(tensor_map const& m) {
  static driver::encode_tiled const encode_tiled = driver::find_encode_tiled();
  constexpr int half = 6, bfloat16 = 9, promotion_to_128_bytes = 2;
  std::uint64_t const extents[] = {std::uint64_t(m.columns), std::uint64_t(m.rows)},
                      strides[] = {std::uint64_t(m.pitch)};
  std::uint32_t const box[] = {std::uint32_t(m.box_columns), std::uint32_t(m.box_rows)},
                      one[] = {1, 1};
  encoded_map to{};
  int const status = encode_tiled(&to, m.format == product_format::fp16 ? half : bfloat16, 2,
                                  const_cast<void*>(m.base), extents, strides, box, one, 0,
                                  int(m.pattern), promotion_to_128_bytes, 0);
  if (status != 0) detail::throw_error<error>({"CUDA, cuTensorMapEncodeTiled: refuses a matrix"});
  return to;
}

}  // namespace pp::cuda
