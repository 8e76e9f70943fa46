// SPDX-License-Identifier: BSL-1.0
//
// The rules of TMA for a map of a matrix.
#pragma once

#include <cstdint>

#include <pipe/backend/cuda/hopper/tensor_map.hpp>

namespace pp::cuda {

enum class map_fault : unsigned char { none, format, extents, pitch, box, span };

/// The reason for which TMA refuses a map, other than the address of its base.
///
/// source: CUDA driver API, cuTensorMapEncodeTiled
constexpr map_fault fault_of(tensor_map const& m) {
  constexpr extent most = extent(1) << 32;
  if (m.format != product_format::bf16 && m.format != product_format::fp16)
    return map_fault::format;
  if (m.rows < 1 || m.rows > most || m.columns < 1 || m.columns > most) return map_fault::extents;
  if (m.pitch % 16 != 0 || m.pitch < 2 * m.columns || m.pitch >= extent(1) << 40)
    return map_fault::pitch;
  if (m.box_rows < 1 || m.box_rows > 256 || m.box_columns < 1 || m.box_columns > 256)
    return map_fault::box;
  int const bytes = 2 * m.box_columns;
  if (bytes % 16 != 0 || (m.pattern != swizzle::none && bytes > span_of(m.pattern)))
    return map_fault::span;
  return map_fault::none;
}
/// The bytes of a box.
constexpr int box_bytes(tensor_map const& m) { return m.box_rows * m.box_columns * 2; }
/// Of its base: a multiple of 16.
inline bool is_aligned(tensor_map const& m) {
  return reinterpret_cast<std::uintptr_t>(m.base) % 16 == 0;
}

}  // namespace pp::cuda
