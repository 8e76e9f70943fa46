// SPDX-License-Identifier: BSL-1.0
//
// The random bits of a generated token, the same on the host and on a GPU.
#pragma once

#include <cstdint>

#include <pipe/base/philox.hpp>

namespace pp::detail {

/// 52 random bits for the token at a place of a text: a uniform number in (0, 1) is
/// (draw + 1/2) / 2^52, which is exact in a double.
///
/// law: one block of Philox for (seed, place)
PIPE_HD constexpr std::uint64_t token_draw(std::uint64_t seed, std::uint64_t place) {
  // Distinct from the streams of parameters, texts and orders.
  constexpr std::uint64_t stream = std::uint64_t(1) << 62;
  philox_block const bits = math::random_block(seed, stream, place);
  return std::uint64_t(bits.word[0]) << 20 | bits.word[1] >> 12;
}

}  // namespace pp::detail
