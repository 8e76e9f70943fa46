// SPDX-License-Identifier: BSL-1.0
//
// The permutation of the 16-byte pieces of a tile in shared memory that TMA and wgmma know: neither
// rows nor columns of it meet in a bank. It is one of byte addresses: where a tile begins does not
// matter.
#pragma once

#include <pipe/base/config.hpp>

namespace pp::cuda {

/// Named by the bytes of a row of a tile, within which pieces change their places.
enum class swizzle : unsigned char { none, bytes_32, bytes_64, bytes_128 };

/// Bytes of a row.
PIPE_HD constexpr int span_of(swizzle s) { return 16 << int(s); }
/// The alignment of what is permuted: eight rows.
PIPE_HD constexpr int alignment_of(swizzle s) { return 8 * span_of(s); }

/// Where the byte of address `at` lies.
///
/// law:    its own inverse; of 128 bytes: address bits 4 to 6 ^= bits 7 to 9
/// source: CUTLASS, Swizzle<B, 4, 3> on bytes
PIPE_HD constexpr unsigned swizzled(swizzle s, unsigned at) {
  return at ^ (at >> 3 & ((1u << int(s)) - 1) << 4);
}

}  // namespace pp::cuda
