// SPDX-License-Identifier: BSL-1.0
//
// The micro-batches that `batches` makes of samples of several lengths, from the lengths alone: for
// plans, which have no data.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <pipe/data/length_order.hpp>
#include <pipe/data/shuffled_order.hpp>
#include <pipe/data/work_by_input.hpp>
#include <pipe/schedule/uneven.hpp>

namespace pp::detail {

/// Ways to compose the mini-batches of an epoch.
enum class composition : unsigned char {
  as_they_come,  ///< a mini-batch is the next samples
  by_length,     ///< batch_settings::by_length
  by_tokens,     ///< batch_settings::by_tokens
  packed         ///< batch_settings::packed
};

/// The room of the micro-batches of a pipeline. context, of_micro_batch: of its first input of
/// token ids; further ones have their own.
struct composition_room {
  int context;        ///< the length of the longest samples
  int each;           ///< samples of a micro-batch
  int micro_batches;  ///< of an accumulation
  int accumulations;
  row_room of_micro_batch;

  constexpr int mini_batch() const { return micro_batches * accumulations; }
};

/// The mini-batches of an epoch: samples in order, and how many each micro-batch has.
struct composed_epoch {
  std::vector<std::size_t> order;
  std::vector<int> counts;
  std::size_t micro_batches;  ///< of a mini-batch

  std::size_t size() const { return (counts.size() + micro_batches - 1) / micro_batches; }
};

/// A shuffled epoch of samples of these lengths.
///
/// inputs: by input of token ids, at least one
/// needs: no length above the context; at least one sample
/// law:   its micro-batches are those of batches<Trainer>(data, {.shuffle = true, .seed = seed})
///        with the setting
template <class = void>
composed_epoch compose(std::span<measured_rows const> inputs, composition_room const& room,
                       composition way, std::uint64_t seed = 0) {
  std::size_t const samples = inputs[0].lengths.size();
  composed_epoch epoch{shuffled_order(samples, seed, 0), {}, std::size_t(room.mini_batch())};
  std::size_t const each = std::size_t(room.each), run = std::size_t(room.micro_batches),
                    whole = each * epoch.micro_batches;
  epoch_shuffle const shuffle{seed, 0};
  if (way == composition::by_tokens || way == composition::packed) {
    epoch.counts =
        fill_micro_batches(epoch.order, inputs, way == composition::packed, run, &shuffle);
    return epoch;
  }
  if (way == composition::by_length) {
    summed_lengths const sums(inputs);
    order_by_length(epoch.order, sums.of, sums.context, {whole, each, run}, &shuffle);
  }
  for (std::size_t i = 0; i < samples; i += each)
    epoch.counts.push_back(int(std::min(each, samples - i)));
  return epoch;
}
/// The same of samples of one input.
template <class = void>
composed_epoch compose(std::span<int const> lengths, composition_room const& room, composition way,
                       std::uint64_t seed = 0) {
  measured_rows const input{{lengths.begin(), lengths.end()}, room.context, room.of_micro_batch};
  return compose(std::span(&input, 1), room, way, seed);
}

/// The lengths of a mini-batch's samples, in their order.
template <class = void>
std::vector<int> lengths_of_batch(composed_epoch const& epoch, std::size_t batch,
                                  std::span<int const> lengths) {
  std::vector<int> all;
  std::size_t sample = 0;
  for (std::size_t mb = 0; mb < epoch.counts.size(); ++mb)
    for (int s = 0; s < epoch.counts[mb]; ++s, ++sample)
      if (mb / epoch.micro_batches == batch) all.push_back(lengths[epoch.order[sample]]);
  return all;
}

/// Samples, their tokens, and their rows in whole blocks.
struct padding_counts {
  long samples = 0, tokens = 0, rows = 0;
  int context = 1;

  /// The share of padding of samples that are padded to the context.
  double of_context() const { return 1 - double(tokens) / (double(samples) * context); }
  /// The share of padding of blocks.
  double of_blocks() const { return 1 - double(tokens) / double(rows); }
};
template <class = void>
padding_counts count_padding(std::span<int const> lengths, composition_room const& room) {
  padding_counts all{long(lengths.size()), 0, 0, room.context};
  for (int const n : lengths) {
    all.tokens += n;
    all.rows += room.of_micro_batch.rows_of(n);
  }
  return all;
}
/// The same of all inputs together: a sample's context is the sum of theirs.
template <class = void>
padding_counts count_padding(std::span<measured_rows const> inputs) {
  padding_counts all{long(inputs[0].lengths.size()), 0, 0, 0};
  for (measured_rows const& in : inputs) {
    all.context += in.context;
    for (int const n : in.lengths) {
      all.tokens += n;
      all.rows += in.room.rows_of(n);
    }
  }
  return all;
}

/// The loads of an epoch's micro-batches, one for each chunk, mini-batch by mini-batch. Those that
/// the last mini-batch does not fill have none. shares: by chunk
template <class = void>
std::vector<micro_batch_load> loads_of(composed_epoch const& epoch,
                                       std::span<measured_rows const> inputs,
                                       std::span<work_by_input const> shares, int each) {
  std::vector<micro_batch_load> loads;
  loads.reserve(epoch.size() * epoch.micro_batches * shares.size());
  std::size_t sample = 0;
  for (int const count : epoch.counts) {
    work_by_input all;
    for (int s = 0; s < count; ++s) all.add(inputs, epoch.order[sample++], each);
    for (work_by_input const& of_chunk : shares) loads.push_back(all.in(of_chunk));
  }
  loads.resize(epoch.size() * epoch.micro_batches * shares.size(), {0, 0});
  return loads;
}

/// The loads of an epoch's micro-batches, mini-batch by mini-batch. Those that the last mini-batch
/// does not fill have none.
template <class = void>
std::vector<micro_batch_load> loads_of(composed_epoch const& epoch, std::span<int const> lengths,
                                       composition_room const& room) {
  std::vector<micro_batch_load> loads(epoch.size() * epoch.micro_batches, {0, 0});
  double const full = room.of_micro_batch.rows;
  std::size_t sample = 0, mb = 0;
  for (int const count : epoch.counts) {
    for (int s = 0; s < count; ++s) {
      double const rows = room.of_micro_batch.rows_of(lengths[epoch.order[sample++]]);
      loads[mb].rows += rows / full;
      loads[mb].squares += rows * rows / (full * room.context);
    }
    ++mb;
  }
  return loads;
}

}  // namespace pp::detail
