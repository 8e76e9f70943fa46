// SPDX-License-Identifier: BSL-1.0
//
// A slab of an operand's tile, 64 deep in k: its copy by TMA and its descriptor for wgmma. TMA and
// wgmma permute rows of 128 bytes in the same way.
#pragma once

#include <pipe/backend/cuda/hopper/tensor_map.hpp>
#include <pipe/backend/cuda/hopper/wgmma.hpp>

namespace pp::cuda {

/// `Extent` rows of a, or columns of b, 64 deep in k, of 16-bit numbers.
///
/// layout: along k: rows of 64 k. Along mn: for each 64 of the extent, 64 rows, one for each k.
///         Both as TMA writes boxes with rows of 128 bytes
template <int Extent, major Along>
struct alignas(1024) wgmma_slab {
  static_assert(Extent % 64 == 0 && Extent <= 256);
  static constexpr int depth = 64, row_bytes = 128, bytes = Extent * row_bytes;
  static constexpr int boxes = Along == major::k ? 1 : Extent / 64;
  unsigned char byte[bytes];

  /// The map of a matrix in memory: (Extent.., k) along k, else (k, Extent..).
  static constexpr tensor_map map_of(void const* base, product_format format, extent mn, extent k) {
    bool const by_k = Along == major::k;
    return {base,
            format,
            by_k ? mn : k,
            by_k ? k : mn,
            2 * (by_k ? k : mn),
            by_k ? Extent : depth,
            64,
            swizzle::bytes_128};
  }
  /// Starts the copy of the slab at (mn, k); `bytes` arrive at `done`.
  template <class Role, class Map>
  PIPE_HD PIPE_INLINE void start(Role& role, Map const& map, int mn, int k, mbarrier* done) {
    if constexpr (Along == major::k) {
      copy_box(role, byte, map, mn, k, done);
    } else {
      PIPE_UNROLL
      for (int i = 0; i < boxes; ++i)
        copy_box(role, byte + i * 64 * row_bytes, map, k, mn + 64 * i, done);
    }
  }

  /// The descriptor of the operand that begins at `first` of the extent, a multiple of 64, and k =
  /// 0.
  template <class Role>
  PIPE_HD PIPE_INLINE std::uint64_t descriptor(Role& role, int first) const {
    wgmma_operand o;
    o.start = address_in(role, byte) + unsigned(first * row_bytes);
    o.leading = Along == major::k ? 16 : 64 * row_bytes;
    o.stride = 8 * row_bytes;
    o.pattern = swizzle::bytes_128;
    return encode(o);
  }
  /// Bytes from the first k of a multiplication to the first k of the next.
  static constexpr int k_stride_bytes =
      Along == major::k ? 2 * wgmma::inner : wgmma::inner * row_bytes;
};

}  // namespace pp::cuda
