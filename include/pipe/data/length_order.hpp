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

/// Puts parts of an order in a random order: parts of counts[0], counts[1], ... consecutive
/// samples. Samples behind the parts keep their places.
///
/// law: a function of (the order, counts, seed, epoch) only
template <class = void>
void shuffle_parts(std::vector<std::size_t>& order, std::vector<int>& counts, std::uint64_t seed,
                   std::uint64_t epoch) {
  // Epochs of samples never have this bit.
  constexpr std::uint64_t of_parts = std::uint64_t(1) << 61;
  std::vector<std::size_t> const before = order;
  std::vector<int> const counts_before = counts;
  std::vector<std::size_t> first(counts.size());
  for (std::size_t part = 1; part < first.size(); ++part)
    first[part] = first[part - 1] + std::size_t(counts[part - 1]);
  std::size_t to = 0, place = 0;
  for (std::size_t const part : shuffled_order(counts.size(), seed, of_parts | epoch)) {
    counts[place++] = counts_before[part];
    for (int i = 0; i < counts_before[part]; ++i)
      order[to++] = before[first[part] + std::size_t(i)];
  }
}

/// The rows and the samples that a micro-batch has room for, and the rows of a block.
struct row_room {
  int rows, samples, block;
  /// The rows of a sample: whole blocks, at least one.
  constexpr int rows_of(int length) const {
    return (length > block ? (length + block - 1) / block : 1) * block;
  }
};

/// The numbers of samples of micro-batches that take the samples in their order, each as many as
/// there is room for.
///
/// needs: each sample has room alone
template <class = void>
std::vector<int> fill_in_order(std::span<std::size_t const> order, std::span<int const> lengths,
                               row_room const& room) {
  std::vector<int> counts;
  int rows = room.rows, samples = 0;  // of the micro-batch so far: at first a full one
  for (std::size_t const sample : order) {
    int const more = room.rows_of(lengths[sample]);
    if (rows + more > room.rows || samples == room.samples) {
      counts.push_back(0);
      rows = samples = 0;
    }
    rows += more, ++samples, ++counts.back();
  }
  return counts;
}

/// The free rows of bins, of which the first one with enough of them is found in logarithmic time:
/// a tree, in which each node has the maximum of its two below.
class free_rows {
 public:
  /// bins: all empty at first
  free_rows(std::size_t bins, int rows) {
    while (leaves_ < bins) leaves_ *= 2;
    most_.assign(2 * leaves_, rows);
  }
  /// needs: there is one
  std::size_t first_with(int rows) const {
    std::size_t node = 1;
    while (node < leaves_) {
      node *= 2;
      if (most_[node] < rows) ++node;
    }
    return node - leaves_;
  }
  int of(std::size_t bin) const { return most_[leaves_ + bin]; }
  void set(std::size_t bin, int rows) {
    std::size_t node = leaves_ + bin;
    most_[node] = rows;
    while (node /= 2) {
      int const left = most_[2 * node], right = most_[2 * node + 1];
      most_[node] = left > right ? left : right;
    }
  }

 private:
  std::size_t leaves_ = 1;
  std::vector<int> most_;  // node n has 2 n and 2 n + 1 below it; bins are the last leaves_ nodes
};

/// Packs samples into micro-batches by first fit decreasing: from the longest sample to the
/// shortest, each goes into the first micro-batch with room for it. Afterwards the order has the
/// samples by micro-batch. Returns the numbers of their samples.
///
/// lengths: by sample, in [0, most]
/// needs:   each sample has room alone
/// law:     samples of equal length are taken in their order
/// law:     at most one micro-batch has less than half of its rows, but for those with as many
///          samples as there may be
/// cost:    O(n log n)
/// source:  Dosa, "The tight bound of first fit decreasing bin-packing algorithm is FFD(I) <= 11/9
///          OPT(I) + 6/9", ESCAPE 2007: micro-batches, if only rows bound them
template <class = void>
std::vector<int> pack_decreasing(std::vector<std::size_t>& order, std::span<int const> lengths,
                                 int most, row_room const& room) {
  {
    std::vector<int> missing(lengths.size());
    for (std::size_t s = 0; s < lengths.size(); ++s) missing[s] = most - lengths[s];
    sort_by_length(order, missing, most, order.size());
  }
  free_rows rows(order.size(), room.rows);
  std::vector<int> counts;
  std::vector<std::size_t> bins;  // of the samples in this order
  for (std::size_t const sample : order) {
    int const more = room.rows_of(lengths[sample]);
    std::size_t const bin = rows.first_with(more);
    if (bin == counts.size()) counts.push_back(0);
    bool const is_full = ++counts[bin] == room.samples;
    rows.set(bin, is_full ? 0 : rows.of(bin) - more);
    bins.push_back(bin);
  }
  std::vector<std::size_t> const before = order;
  std::vector<std::size_t> next(counts.size());  // place of each micro-batch's next sample
  for (std::size_t bin = 1; bin < next.size(); ++bin)
    next[bin] = next[bin - 1] + std::size_t(counts[bin - 1]);
  for (std::size_t i = 0; i < before.size(); ++i) order[next[bins[i]]++] = before[i];
  return counts;
}

/// Mini-batches of consecutive samples of an order, each of up to `most` micro-batches with given
/// numbers of samples.
struct filled_batches {
  std::vector<std::size_t> first_sample;  ///< of each mini-batch, and the end
  std::vector<int> counts;                ///< samples, by micro-batch
  std::size_t most = 1;

  filled_batches() = default;
  filled_batches(std::vector<int>&& samples, std::size_t micro_batches)
      : counts(std::move(samples)), most(micro_batches) {
    std::size_t at = 0;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      if (i % most == 0) first_sample.push_back(at);
      at += std::size_t(counts[i]);
    }
    first_sample.push_back(at);
  }
  std::span<int const> counts_of(std::size_t batch) const {
    std::size_t const first = batch * most, left = counts.size() - first;
    return std::span(counts).subspan(first, left < most ? left : most);
  }
};

}  // namespace pp::detail
