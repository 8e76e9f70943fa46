// SPDX-License-Identifier: BSL-1.0
//
// The checksum of records in event files.
#pragma once

#include <cstdint>
#include <string_view>

namespace pp::detail {

/// CRC-32C (Castagnoli), reflected, initial value and final xor 0xFFFFFFFF.
///
/// source: Castagnoli et al., "Optimization of cyclic redundancy-check codes with 24 and 32 parity
///         bits", 1993; known answers in RFC 3720, appendix B.4
constexpr std::uint32_t crc32c(std::string_view bytes) {
  std::uint32_t remainder = 0xFFFFFFFF;
  for (char const c : bytes) {
    remainder ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) remainder = remainder >> 1 ^ (remainder & 1 ? 0x82F63B78 : 0);
  }
  return ~remainder;
}

}  // namespace pp::detail
