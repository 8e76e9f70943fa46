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

/// The rows and the samples that a micro-batch has room for, and the rows of a block.
struct row_room {
  int rows, samples, block;
  /// The rows of a sample: whole blocks, at least one.
  constexpr int rows_of(int length) const {
    return (length > block ? (length + block - 1) / block : 1) * block;
  }
};
/// Mini-batches of consecutive samples of an order, which fill their micro-batches: each has as
/// many samples as there is room for.
struct filled_batches {
  std::vector<std::size_t> first_sample;       ///< of each mini-batch, and the end
  std::vector<std::size_t> first_micro_batch;  ///< likewise
  std::vector<int> counts;                     ///< samples, by micro-batch

  std::span<int const> counts_of(std::size_t batch) const {
    return std::span(counts).subspan(first_micro_batch[batch],
                                     first_micro_batch[batch + 1] - first_micro_batch[batch]);
  }
};
/// needs: each sample has room alone
template <class = void>
filled_batches fill_batches(std::span<std::size_t const> order, std::span<int const> lengths,
                            row_room const& room, std::size_t micro_batches) {
  filled_batches all;
  int rows = room.rows, samples = 0;  // of the micro-batch so far: at first a full one
  for (std::size_t i = 0; i < order.size(); ++i) {
    int const more = room.rows_of(lengths[order[i]]);
    if (rows + more > room.rows || samples == room.samples) {
      if (all.first_sample.empty() ||
          all.counts.size() - all.first_micro_batch.back() == micro_batches) {
        all.first_sample.push_back(i);
        all.first_micro_batch.push_back(all.counts.size());
      }
      all.counts.push_back(0);
      rows = samples = 0;
    }
    rows += more, ++samples, ++all.counts.back();
  }
  all.first_sample.push_back(order.size());
  all.first_micro_batch.push_back(all.counts.size());
  return all;
}

}  // namespace pp::detail
