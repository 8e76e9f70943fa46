// SPDX-License-Identifier: BSL-1.0
//
// Random orders of a data set, each a function of a seed and the number of an epoch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <pipe/base/philox.hpp>

namespace pp::detail {

/// A random permutation of 0 ... n - 1, uniformly distributed.
///
/// law: a function of (n, seed, epoch) only
/// source: Fisher and Yates, 1938; Durstenfeld, 1964
template <class = void>
std::vector<std::size_t> shuffled_order(std::size_t n, std::uint64_t seed, std::uint64_t epoch) {
  // Disjoint from the streams of initial parameters and of text_data.
  constexpr std::uint64_t stream = std::uint64_t(3) << 62;
  std::vector<std::size_t> order(n);
  for (std::size_t i = 0; i < n; ++i) {
    philox_block const bits = math::random_block(seed, stream | epoch, i);
    std::size_t const k = std::size_t((std::uint64_t(bits.word[1]) << 32 | bits.word[0]) % (i + 1));
    order[i] = order[k];
    order[k] = i;
  }
  return order;
}

}  // namespace pp::detail
