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

/// Reorders micro-batches, in each accumulation with the shortest ones at both ends: a pipeline
/// fills and drains by them, and waits least.
///
/// samples: of one or more mini-batches; counts: of them, by micro-batch; run: micro-batches of an
/// accumulation; context: of the longest samples
/// law: a function of lengths and counts only; micro-batches keep their samples and the order of
///      these, and micro-batches that are alike theirs
template <class = void>
void put_shortest_at_ends(std::span<std::size_t> samples, std::span<int> counts,
                          std::span<int const> lengths, int context, std::size_t run) {
  struct micro_batch {
    std::size_t first;
    int count;
    long work;
  };
  std::vector<std::size_t> const before(samples.begin(), samples.end());
  std::vector<micro_batch> of_run;  // by their work, ascending
  for (std::size_t from = 0, first = 0; from < counts.size(); from += run) {
    std::size_t const left = counts.size() - from, size = left < run ? left : run;
    std::size_t to = first;  // of the samples that are put
    of_run.clear();
    for (int const count : counts.subspan(from, size)) {
      micro_batch m{first, count, 0};
      // Rows, and scores of an attention that take as long in a sample of the context.
      for (int s = 0; s < count; ++s, ++first)
        m.work += long(lengths[before[first]]) * (context + lengths[before[first]]);
      std::size_t place = of_run.size();
      while (place > 0 && of_run[place - 1].work > m.work) --place;
      of_run.insert(of_run.begin() + std::ptrdiff_t(place), m);
    }
    for (std::size_t i = 0; i < size; ++i) {
      micro_batch const& m = of_run[2 * i < size ? 2 * i : 2 * (size - i) - 1];
      counts[from + i] = m.count;
      for (int s = 0; s < m.count; ++s) samples[to++] = before[m.first + std::size_t(s)];
    }
  }
}

/// The shuffle of an epoch: see shuffled_order.
struct epoch_shuffle {
  std::uint64_t seed = 0, epoch = 0;
};

/// The samples of a mini-batch and of a micro-batch, and the micro-batches of an accumulation.
struct batch_sizes {
  std::size_t mini_batch, micro_batch, run;
};
/// Sorts every 64 mini-batches of an order by length, and orders the micro-batches of each. One
/// that is not full stays the last, as its samples are told by their place. With a shuffle the
/// mini-batches are in random order.
///
/// lengths: by sample, in [0, context]
template <class = void>
void order_by_length(std::vector<std::size_t>& order, std::span<int const> lengths, int context,
                     batch_sizes const& of, epoch_shuffle const* shuffle = nullptr) {
  sort_by_length(order, lengths, context, 64 * of.mini_batch);
  std::vector<int> counts;
  for (std::size_t from = 0; from < order.size(); from += of.mini_batch) {
    std::size_t const left = order.size() - from,
                      whole = (left < of.mini_batch ? left : of.mini_batch) / of.micro_batch;
    counts.assign(whole, int(of.micro_batch));
    put_shortest_at_ends(std::span(order).subspan(from, whole * of.micro_batch), counts, lengths,
                         context, of.run);
  }
  if (shuffle == nullptr) return;
  counts.assign(order.size() / of.mini_batch, int(of.mini_batch));
  shuffle_parts(order, counts, shuffle->seed, shuffle->epoch);
}

/// The rows and the samples that a micro-batch has room for, and the rows of a block.
struct row_room {
  int rows, samples, block;
  /// The rows of a sample: whole blocks, at least one.
  constexpr int rows_of(int length) const {
    return (length > block ? (length + block - 1) / block : 1) * block;
  }
};

/// The rows of an input of all samples: lengths by sample, of at most `context`, and the room in a
/// micro-batch.
struct measured_rows {
  std::vector<int> lengths;
  int context;
  row_room room;

  int rows_of(std::size_t sample) const { return room.rows_of(lengths[sample]); }
};
/// The lengths of samples as sums over their inputs.
struct summed_lengths {
  std::vector<int> of;
  int context = 0;

  explicit summed_lengths(std::span<measured_rows const> inputs) : of(inputs[0].lengths.size()) {
    for (measured_rows const& in : inputs) {
      context += in.context;
      for (std::size_t s = 0; s < of.size(); ++s) of[s] += in.lengths[s];
    }
  }
};

/// The numbers of samples of micro-batches that take the samples in their order, each as many as
/// there is room for.
///
/// inputs: at least one, whose rooms are for as many samples
/// needs: each sample has room alone
template <class = void>
std::vector<int> fill_in_order(std::span<std::size_t const> order,
                               std::span<measured_rows const> inputs) {
  std::vector<int> counts, rows(inputs.size(), 0);  // rows: of the micro-batch so far, by input
  int const most = inputs[0].room.samples;
  int samples = most;  // of the micro-batch so far: at first a full one
  for (std::size_t const sample : order) {
    bool is_full = samples == most;
    for (std::size_t k = 0; k < inputs.size(); ++k)
      is_full = is_full || rows[k] + inputs[k].rows_of(sample) > inputs[k].room.rows;
    if (is_full) {
      counts.push_back(0);
      rows.assign(inputs.size(), 0);
      samples = 0;
    }
    for (std::size_t k = 0; k < inputs.size(); ++k) rows[k] += inputs[k].rows_of(sample);
    ++samples, ++counts.back();
  }
  return counts;
}

/// The free rows of bins by input, of which the first one with enough of them is found in
/// logarithmic time, with one input: a tree, in which each node has the maximum of its two below.
class free_rows {
 public:
  /// bins: all empty at first
  free_rows(std::size_t bins, std::span<measured_rows const> inputs) : inputs_(inputs.size()) {
    while (leaves_ < bins) leaves_ *= 2;
    most_.reserve(2 * leaves_ * inputs_);
    for (std::size_t node = 0; node < 2 * leaves_; ++node)
      for (measured_rows const& in : inputs) most_.push_back(in.room.rows);
  }
  /// rows: by input
  ///
  /// needs: there is one
  std::size_t first_with(std::span<int const> rows) const {
    std::size_t node = 1;
    while (true) {
      if (fits(node, rows)) {
        if (node >= leaves_) return node - leaves_;
        node *= 2;
      } else {
        while (node % 2 == 1) node /= 2;  // up from a right one
        ++node;
      }
    }
  }
  /// Takes rows of a bin; closed: all of them.
  void take(std::size_t bin, std::span<int const> rows, bool closed) {
    std::size_t node = leaves_ + bin;
    for (std::size_t k = 0; k < inputs_; ++k) {
      int& left = most_[node * inputs_ + k];
      left = closed ? 0 : left - rows[k];
    }
    while (node /= 2)
      for (std::size_t k = 0; k < inputs_; ++k) {
        int const left = most_[2 * node * inputs_ + k], right = most_[(2 * node + 1) * inputs_ + k];
        most_[node * inputs_ + k] = left > right ? left : right;
      }
  }

 private:
  bool fits(std::size_t node, std::span<int const> rows) const {
    for (std::size_t k = 0; k < inputs_; ++k)
      if (most_[node * inputs_ + k] < rows[k]) return false;
    return true;
  }

  std::size_t leaves_ = 1, inputs_;
  // By node and input: node n has 2 n and 2 n + 1 below it; bins are the last leaves_ nodes.
  std::vector<int> most_;
};

/// Packs samples into micro-batches by first fit decreasing: from the longest sample to the
/// shortest, of several inputs by the sum, each goes into the first micro-batch with room for it.
/// Afterwards the order has the samples by micro-batch. Returns the numbers of their samples.
///
/// inputs: at least one, whose rooms are for as many samples
/// needs:   each sample has room alone
/// law:     samples of equal length are taken in their order
/// law:     with one input at most one micro-batch has less than half of its rows, but for those
///          with as many samples as there may be
/// cost:    O(n log n) with one input
/// source:  Dosa, "The tight bound of first fit decreasing bin-packing algorithm is FFD(I) <= 11/9
///          OPT(I) + 6/9", ESCAPE 2007: micro-batches, if only rows of one input bound them
template <class = void>
std::vector<int> pack_decreasing(std::vector<std::size_t>& order,
                                 std::span<measured_rows const> inputs) {
  {
    summed_lengths const lengths(inputs);
    std::vector<int> missing;  // to the longest
    for (int const n : lengths.of) missing.push_back(lengths.context - n);
    sort_by_length(order, missing, lengths.context, order.size());
  }
  free_rows rows(order.size(), inputs);
  std::vector<int> counts, more(inputs.size());
  std::vector<std::size_t> bins;  // of the samples in this order
  for (std::size_t const sample : order) {
    for (std::size_t k = 0; k < inputs.size(); ++k) more[k] = inputs[k].rows_of(sample);
    std::size_t const bin = rows.first_with(more);
    if (bin == counts.size()) counts.push_back(0);
    rows.take(bin, more, ++counts[bin] == inputs[0].room.samples);
    bins.push_back(bin);
  }
  std::vector<std::size_t> const before = order;
  std::vector<std::size_t> next(counts.size());  // place of each micro-batch's next sample
  for (std::size_t bin = 1; bin < next.size(); ++bin)
    next[bin] = next[bin - 1] + std::size_t(counts[bin - 1]);
  for (std::size_t i = 0; i < before.size(); ++i) order[next[bins[i]]++] = before[i];
  return counts;
}

/// The numbers of samples of an epoch's micro-batches, each as full as the composition makes it, in
/// the order in which a pipeline waits least.
///
/// packs: by first fit decreasing, and then in random order if there is a shuffle; else the samples
///        are taken in their order. run: micro-batches of an accumulation
/// needs: each sample has room alone
template <class = void>
std::vector<int> fill_micro_batches(std::vector<std::size_t>& order,
                                    std::span<measured_rows const> inputs, bool packs,
                                    std::size_t run, epoch_shuffle const* shuffle) {
  std::vector<int> counts = packs ? pack_decreasing(order, inputs) : fill_in_order(order, inputs);
  if (packs && shuffle != nullptr) shuffle_parts(order, counts, shuffle->seed, shuffle->epoch);
  summed_lengths const lengths(inputs);
  put_shortest_at_ends(order, counts, lengths.of, lengths.context, run);
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
