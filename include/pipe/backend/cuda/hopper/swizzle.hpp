// SPDX-License-Identifier: BSL-1.0
//
// The permutation of the 16-byte pieces of a tile in shared memory that TMA and wgmma use, so that
// neither rows nor columns of the tile have bank conflicts. It is a permutation of byte addresses,
// so it does not depend on where a tile begins.
#pragma once

#include <pipe/base/config.hpp>

namespace pp::cuda {

/// The permutations, by the bytes of a row of a tile: pieces are permuted within a row.
enum class swizzle : unsigned char { none, bytes_32, bytes_64, bytes_128 };

/// The bytes of a row.
PIPE_HD constexpr int span_of(swizzle s) { return 16 << int(s); }

/// The address of the byte at address `at` before the permutation.
///
/// law:    its own inverse; for rows of 128 bytes, address bits 4 to 6 ^= bits 7 to 9
/// source: CUTLASS, Swizzle<B, 4, 3> on bytes
PIPE_HD constexpr unsigned swizzled(swizzle s, unsigned at) {
  return at ^ (at >> 3 & ((1u << int(s)) - 1) << 4);
}

}  // namespace pp::cuda
