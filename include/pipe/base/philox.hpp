// SPDX-License-Identifier: BSL-1.0
//
// Counter-based random numbers: the bits are a function of (key, counter) and of no state. So a
// parameter gets the same initial values and a sample the same dropout mask on any number of ranks
// and in any order of evaluation. Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as
// easy as 1, 2, 3", SC 2011 (Philox4x32-10).
#pragma once

#include <cstdint>

#include <pipe/base/config.hpp>

namespace pp {

namespace detail {

/// 128 bits: a counter, or the random words made from it.
struct philox_block {
  std::uint32_t word[4];
};

/// Philox4x32-10.
///
/// law: for each key a bijection of the counter; known answers in tests/base/philox.cpp
PIPE_HD constexpr philox_block philox(philox_block counter, std::uint32_t key0,
                                      std::uint32_t key1) {
  for (int round = 0; round < 10; ++round) {
    std::uint64_t const a = std::uint64_t(0xD2511F53u) * counter.word[0];
    std::uint64_t const b = std::uint64_t(0xCD9E8D57u) * counter.word[2];
    counter = philox_block{{std::uint32_t(b >> 32) ^ counter.word[1] ^ key0, std::uint32_t(b),
                            std::uint32_t(a >> 32) ^ counter.word[3] ^ key1, std::uint32_t(a)}};
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return counter;
}

}  // namespace detail

namespace math {

/// The four random words of block `index` of stream `stream` under `seed`.
///
/// law: different (stream, index) under one seed are different counters, so blocks never coincide
PIPE_HD constexpr detail::philox_block random_block(std::uint64_t seed, std::uint64_t stream,
                                                    std::uint64_t index) {
  return detail::philox(detail::philox_block{{std::uint32_t(index), std::uint32_t(index >> 32),
                                              std::uint32_t(stream), std::uint32_t(stream >> 32)}},
                        std::uint32_t(seed), std::uint32_t(seed >> 32));
}

/// A uniform number in (0, 1), never 0 and never 1: the midpoints of 2^23 equal intervals, each
/// exact in float. So its logarithm is finite.
PIPE_HD constexpr float unit_uniform(std::uint32_t word) {
  return (float(word >> 9) + 0.5f) * (1.0f / 8388608.0f);
}

}  // namespace math

}  // namespace pp
