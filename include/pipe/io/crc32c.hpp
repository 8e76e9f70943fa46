// SPDX-License-Identifier: BSL-1.0
//
// The checksum of records in event files and of tensors in checkpoints. It is computed faster than
// a disk writes: by the instruction that x86-64 processors have for it, elsewhere by table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <pipe/base/config.hpp>

namespace pp::detail {

/// CRC-32C (Castagnoli), reflected, initial value and final xor 0xFFFFFFFF, of bytes that follow
/// other bytes, whose checksum is `before`.
///
/// law:    crc32c(b, crc32c(a)) is the checksum of a and b in a row
/// source: Castagnoli et al., "Optimization of cyclic redundancy-check codes with 24 and 32 parity
///         bits", 1993; known answers in RFC 3720, appendix B.4
std::uint32_t crc32c(std::span<std::byte const> bytes, std::uint32_t before = 0);

}  // namespace pp::detail
#ifdef PIPE_DEFINED
#include <pipe/io/crc32c.inl>
#endif
