// SPDX-License-Identifier: BSL-1.0
//
// The number of samples in a micro-batch.
#pragma once

#include <pipe/base/list.hpp>
#include <pipe/graph/model_tables.hpp>
#include <pipe/train/options/micro_batches.hpp>

namespace pp {

namespace option_family {
struct micro_batch_size;
}

/// N samples in each micro-batch (default 1). Must be positive.
template <int N>
struct MicroBatchSize {
  using family = option_family::micro_batch_size;
  static constexpr int value = N;
};

/// Upper bounds: samples in a mini-batch (indices fit an int), and elements of a value for one
/// micro-batch (byte offsets stay far from 2^63).
inline constexpr long most_samples = (1L << 31) - 1, most_numbers_of_value = 1L << 36;

namespace wrong {
/// A micro-batch of the model would exceed most_samples rows or most_numbers_of_value elements.
template <class... What>
struct micro_batch_is_too_large;
/// The model has a batch norm of one number per sample and channel, and a micro-batch one sample.
template <class... What>
struct micro_batch_norms_one_number;
}  // namespace wrong

/// Largest micro-batch that a model supports: the rows of every op and the elements of every value
/// are bounded.
template <class M>
constexpr long most_samples_at_once() {
  long rows = M::graph.output.rows(), numbers = 0;
  for (int i = 0; i < M::graph.size.ops; ++i)
    if (M::graph.ops[i].rows > rows) rows = M::graph.ops[i].rows;
  for (int i = 0; i < M::graph.size.values; ++i)
    if (M::graph.values[i].elements > numbers) numbers = M::graph.values[i].elements;
  long const by_rows = most_samples / rows, by_numbers = most_numbers_of_value / numbers;
  return by_rows < by_numbers ? by_rows : by_numbers;
}

/// Whether the model has a batch norm without positions: a micro-batch then needs two samples for a
/// variance.
template <class M>
constexpr bool norms_samples() {
  for (detail::parameter const& p : detail::model_tables<M>::parameters)
    if (p.is_committed() && p.commit.is_variance() && p.commit.terms == 1) return true;
  return false;
}

/// The family of micro-batch sizes. A mini-batch has at most most_samples samples.
struct option_family::micro_batch_size : detail::any_family {
  using fallback = MicroBatchSize<1>;

  template <class Options>
  static constexpr auto diagnose() {
    using option = typename Options::template get<micro_batch_size>;
    using count = typename Options::template get<micro_batches>;
    if constexpr (option::value < 1)
      return detail::diagnosis_of<wrong::number_must_be_positive, option>();
    else if constexpr (long(count::value) * option::value > most_samples)
      return detail::diagnosis_of<wrong::number_is_too_large, count, option,
                                  wrong::AtMost<most_samples>>();
    else
      return std::type_identity<detail::nothing_wrong>{};
  }
  template <class M, class Options>
  static constexpr auto diagnose_for() {
    using option = typename Options::template get<micro_batch_size>;
    constexpr long most = most_samples_at_once<M>();
    if constexpr (option::value > most)
      return detail::diagnosis_of<wrong::micro_batch_is_too_large, M, option,
                                  wrong::AtMost<most>>();
    else if constexpr (option::value == 1 && norms_samples<M>())
      return detail::diagnosis_of<wrong::micro_batch_norms_one_number, M, option>();
    else
      return std::type_identity<detail::nothing_wrong>{};
  }
};

}  // namespace pp
