// SPDX-License-Identifier: BSL-1.0
//
// The lengths of the samples of a mini-batch or data set: as given, or of padded samples.
#pragma once

#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <pipe/graph/model_tables.hpp>
#include <pipe/plan/options/lengths.hpp>
#include <pipe/train/parts/batch.hpp>

namespace pp::detail {

/// Calls use(integral_constant of the number) for each input of model M.
template <class M, class Use>
constexpr void for_each_input(Use const& use) {
  [&]<int... Is>(std::integer_sequence<int, Is...>) {
    (use(std::integral_constant<int, Is>{}), ...);
  }(std::make_integer_sequence<int, M::graph_type::size.inputs>{});
}

/// Lists of padded samples with an id for each position of one axis: token ids, and labels.
struct padded_ids {
  std::size_t size = 0;  ///< of each list
  int context = 0, count = 0;
  int const* items[max_inputs + 1]{};

  /// Adds a list; one of another size is missing, or refused elsewhere.
  void add(std::span<int const> ids) {
    if (ids.size() == size) items[count++] = ids.data();
  }
  /// The number of rows up to the last one of a sample that has an id or a label.
  int length_of(long sample) const {
    int n = 0;
    for (int i = 0; i < count; ++i) {
      int const* const ids = items[i] + sample * context;
      int end = context;
      while (end > n && ids[end - 1] < 0) --end;
      n = end;
    }
    return n;
  }
};
/// The lists of a batch whose numbers are ids by the positions of input Input, which is token ids.
template <int Input, class Batch>
padded_ids padded_ids_of(Batch const& b, bool with_labels) {
  using M = typename Batch::model;
  constexpr auto const& records = model_tables<M>::inputs;
  padded_ids all{input_of<Input>(b).size(), int(records[Input].form.elements())};
  for_each_input<M>([&](auto input) {
    constexpr input_record in = records[input()];
    if constexpr (in.is_ids && (in.axis == Input + 1 || input() == Input))
      if (with_labels || !in.of_loss) all.add(input_of<input()>(b));
  });
  if constexpr (model_tables<M>::loss_inputs[0].axis == Input + 1 && M::labels_are_ids)
    if (with_labels) all.add(b.labels);
  return all;
}

/// The lengths of the samples of input Input, which is token ids: as given, or of padded samples.
template <int Input, class Batch>
std::vector<int> lengths_of(Batch const& b, std::size_t samples) {
  std::span<int const> const given = lengths_of_input<Input>(b);
  if (!given.empty()) return {given.begin(), given.end()};
  padded_ids const ids = padded_ids_of<Input>(b, true);
  std::vector<int> all(samples);
  for (std::size_t s = 0; s < samples; ++s) all[s] = ids.length_of(long(s));
  return all;
}

/// The lengths of samples, each the sum over its inputs of token ids, of which inputs that are
/// joined row by row count once. longest: of all such sums; 0 if no input is token ids
template <class Batch>
std::vector<int> sums_of_lengths(Batch const& b, std::size_t samples, int& longest) {
  using M = typename Batch::model;
  std::vector<int> all(samples, 0);
  longest = 0;
  for_each_input<M>([&](auto input) {
    constexpr input_record in = model_tables<M>::inputs[input()];
    if constexpr (in.is_ids && !in.of_loss && (in.axis == 0 || is_axis(in, input()))) {
      longest += int(in.form.elements());
      std::vector<int> const of = lengths_of<input()>(b, samples);
      for (std::size_t s = 0; s < samples; ++s) all[s] += of[s];
    }
  });
  return all;
}

/// The most samples of a micro-batch of compiled pipeline P with Lengths: segments have a block at
/// least, and values of whole samples, such as those of a pool, are planned for MicroBatchSize.
template <class P>
constexpr int most_segments() {
  using M = typename P::model;
  constexpr int each = P::samples;
  if (!has_rows_alone<M>) return each;
  int most = each * P::lengths::most;
  for (int i = 0; i < M::graph_type::size.inputs; ++i)
    if (input_record const& in = model_tables<M>::inputs[i]; is_axis(in, i))
      if (int const blocks = int(each * in.form.elements()) / P::lengths::block; blocks < most)
        most = blocks;
  return most;
}

}  // namespace pp::detail
