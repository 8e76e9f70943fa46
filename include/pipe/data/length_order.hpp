// SPDX-License-Identifier: BSL-1.0
//
// Orders of a data set in which the samples of a mini-batch have like lengths.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <pipe/data/shuffled_order.hpp>

namespace pp::detail {

/// Sorts each window of consecutive samples of an order by length.
///
/// lengths: by sample, in [0, most]; window: samples of a window, except for the last one
/// law:     samples of equal length stay in their order
template <class = void>
void sort_by_length(std::vector<std::size_t>& order, std::span<int const> lengths, int most,
                    std::size_t window) {
  std::vector<std::size_t> sorted(order.size());
  for (std::size_t from = 0; from < order.size(); from += window) {
    std::size_t const left = order.size() - from, end = from + (left < window ? left : window);
    std::vector<std::size_t> places(std::size_t(most) + 2, 0);  // of the next sample, by length
    for (std::size_t i = from; i < end; ++i) ++places[std::size_t(lengths[order[i]]) + 1];
    for (std::size_t n = 1; n < places.size(); ++n) places[n] += places[n - 1];
    for (std::size_t i = from; i < end; ++i)
      sorted[from + places[std::size_t(lengths[order[i]])]++] = order[i];
  }
  order = std::move(sorted);
}

/// Puts the whole mini-batches of an order in a random order; one that is not full stays the last.
///
/// law: a function of (the order, whole, seed, epoch) only
template <class = void>
void shuffle_batches(std::vector<std::size_t>& order, std::size_t whole, std::uint64_t seed,
                     std::uint64_t epoch) {
  // Epochs of samples never have this bit.
  constexpr std::uint64_t of_batches = std::uint64_t(1) << 61;
  std::vector<std::size_t> const before = order;
  std::size_t to = 0;
  for (std::size_t const batch : shuffled_order(order.size() / whole, seed, of_batches | epoch))
    for (std::size_t i = 0; i < whole; ++i) order[to++] = before[batch * whole + i];
}

}  // namespace pp::detail
