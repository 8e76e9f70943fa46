// SPDX-License-Identifier: BSL-1.0
//
// A mini-batch in memory of its own, for programs that make their samples: a trainer's batch is
// only a view of numbers.
#pragma once

#include <cstddef>
#include <type_traits>
#include <vector>

#include <pipe/base/text.hpp>
#include <pipe/data/data_set.hpp>
#include <pipe/data/inputs.hpp>

namespace pp {

/// The lists of a mini-batch, as vectors, under the names that they have in `Trainer::batch`.
template <class Trainer>
struct owned_batch {
  using batch = typename Trainer::batch;
  using element = typename Trainer::element;

  std::vector<typename Trainer::input_type> inputs;
  std::vector<typename Trainer::label_type> labels;
  // By input number. An input has its list in one of the two arrays, by its type. Entry 0 is not
  // used.
  std::vector<int> named_ids[detail::max_inputs];
  std::vector<element> named_numbers[detail::max_inputs];
  /// The lengths of samples that lie one behind the other, or nothing: of the first input, and of
  /// further ones by their number. See batch::set_lengths.
  std::vector<int> lengths, named_lengths[detail::max_inputs];
  /// The number of samples of each micro-batch, or nothing: see batch::set_micro_batches.
  std::vector<int> micro_batches;

  /// The list of an input by its name in the model.
  template <Text Name>
  auto& get() {
    using M = typename Trainer::model;
    static_assert(detail::accepted<decltype(detail::diagnose_name<M, Name>())>::value);
    constexpr int input = batch::template input_named<Name>;
    if constexpr (input == 0)
      return inputs;
    else if constexpr (detail::model_tables<M>::inputs[input].is_ids)
      return named_ids[input];
    else
      return named_numbers[input];
  }

  /// Resizes every list to the numbers of `samples` samples; new numbers are 0. Samples have the
  /// length of the context then, and micro-batches MicroBatchSize samples.
  void resize(std::size_t samples) {
    lengths.clear();
    micro_batches.clear();
    for (std::vector<int>& of : named_lengths) of.clear();
    data_set::for_each_list<Trainer>(
        *this, [&](auto& list, std::size_t per_sample, data_set::list_name const&) {
          list.resize(samples * per_sample);
        });
  }
  /// Copies the lists of a batch.
  void assign(batch const& from) {
    inputs.assign(from.inputs.begin(), from.inputs.end());
    labels.assign(from.labels.begin(), from.labels.end());
    lengths.assign(from.lengths.begin(), from.lengths.end());
    micro_batches.assign(from.micro_batches.begin(), from.micro_batches.end());
    for (int i = 1; i < detail::max_inputs; ++i) {
      named_ids[i].assign(from.named_ids[i].begin(), from.named_ids[i].end());
      named_numbers[i].assign(from.named_numbers[i].begin(), from.named_numbers[i].end());
      named_lengths[i].assign(from.named_lengths[i].begin(), from.named_lengths[i].end());
    }
  }
  /// The mini-batch for a trainer, valid until a list changes.
  batch view() const {
    batch b{inputs, labels};
    b.lengths = lengths;
    b.micro_batches = micro_batches;
    for (int i = 1; i < detail::max_inputs; ++i) {
      b.named_ids[i] = named_ids[i];
      b.named_numbers[i] = named_numbers[i];
      b.named_lengths[i] = named_lengths[i];
    }
    return b;
  }
};

}  // namespace pp
