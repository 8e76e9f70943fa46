// SPDX-License-Identifier: BSL-1.0
//
// The 64-bit descriptor by which a wgmma instruction finds an operand in shared memory. A plain
// value: tests decode it, follow it byte by byte, and compare it with CUTLASS's descriptor.
//
//   bits 0-13   start address / 16          bits 32-45  stride offset / 16
//   bits 16-29  leading offset / 16         bits 49-51  base offset
//                                           bits 62-63  0: no swizzle, 1: 128, 2: 64, 3: 32 bytes
#pragma once

#include <cstdint>

#include <pipe/backend/cuda/hopper/swizzle.hpp>

namespace pp::cuda {

/// The index of an operand that is contiguous in memory: k, or the row of a and the column of b.
enum class major : unsigned char { k, mn };

/// An operand in shared memory, of elements of 16 bits. Offsets are bytes.
///
/// layout: cores of 8 consecutive rows of span_of(pattern) bytes. Along k, a core is 8 rows or
///         columns of the operand: `stride` bytes to the next 8, and without a swizzle `leading`
///         bytes to the next 8 k. Along mn, a core is 8 k of a span: `stride` bytes to the next 8
///         k, and `leading` bytes to the next span; without a swizzle, `stride` and `leading`
///         exchange roles
/// source: PTX ISA, "Strides of wgmma.mma_async"; CUTLASS, mma_traits_sm90_gmma.hpp
struct wgmma_operand {
  unsigned start = 0;
  int leading = 0, stride = 0;
  swizzle pattern = swizzle::none;
  int base_offset = 0;  ///< 0 if 8 rows are aligned to 8 * span_of(pattern)
  friend constexpr bool operator==(wgmma_operand const&, wgmma_operand const&) = default;
};

/// The descriptor of an operand.
///
/// needs: start, leading and stride are multiples of 16 below 2^18
PIPE_HD constexpr std::uint64_t encode(wgmma_operand const& o) {
  auto const sixteenths = [](unsigned bytes) { return std::uint64_t(bytes >> 4 & 0x3fff); };
  unsigned const type = (4 - unsigned(o.pattern)) & 3;
  return sixteenths(o.start) | sixteenths(unsigned(o.leading)) << 16 |
         sixteenths(unsigned(o.stride)) << 32 | std::uint64_t(unsigned(o.base_offset) & 7) << 49 |
         std::uint64_t(type) << 62;
}
PIPE_HD constexpr wgmma_operand decode(std::uint64_t d) {
  auto const bytes = [&](int bit) { return unsigned(d >> bit & 0x3fff) << 4; };
  return {bytes(0), int(bytes(16)), int(bytes(32)), swizzle((4 - unsigned(d >> 62)) & 3),
          int(d >> 49 & 7)};
}

/// The descriptor of the same operand `bytes` further, a multiple of 16; addresses stay below 2^18.
PIPE_HD constexpr std::uint64_t advance(std::uint64_t d, int bytes) {
  return d + std::uint64_t(unsigned(bytes) >> 4);
}

/// The address of element (mn, k) of an operand.
PIPE_HD constexpr unsigned place_of(wgmma_operand const& o, major along, int mn, int k) {
  int const span = span_of(o.pattern), each = span / 2;
  int at = 0;
  if (o.pattern == swizzle::none)
    at = along == major::k ? mn / 8 * o.stride + mn % 8 * 16 + k / 8 * o.leading + k % 8 * 2
                           : mn / 8 * o.stride + mn % 8 * 2 + k / 8 * o.leading + k % 8 * 16;
  else
    at = along == major::k
             ? mn / 8 * o.stride + mn % 8 * span + k * 2
             : mn / each * o.leading + mn % each * 2 + k / 8 * o.stride + k % 8 * span;
  return swizzled(o.pattern, o.start + unsigned(at));
}

}  // namespace pp::cuda
