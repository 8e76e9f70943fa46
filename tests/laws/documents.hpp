// SPDX-License-Identifier: BSL-1.0
//
// Samples of several lengths for laws: padded to the context, and one behind the other.
#pragma once

#include <cstddef>
#include <random>
#include <vector>

#include <pipe/pipe.hpp>

namespace laws {

/// Samples of drawn lengths, with blocks that are full, one row short and one row over, for a
/// trainer without Lengths.
template <class Trainer>
struct documents {
  using label = typename Trainer::label_type;
  static constexpr int context = int(Trainer::inputs_per_sample),
                       words =
                           pp::detail::model_tables<typename Trainer::model>::inputs[0].vocabulary;
  static constexpr bool by_row = Trainer::labels_per_sample == context;
  std::vector<int> padded, dense, lengths;
  std::vector<label> padded_labels, dense_labels;

  /// shortest: of a sample; the fourth sample of an even seed has no token
  documents(unsigned seed, int samples, int shortest = 1) {
    std::mt19937 random(seed);
    auto const draw = [&](int n) { return int(random() % unsigned(n)); };
    for (int s = 0; s < samples; ++s) {
      int const usual[] = {1, 7, 8, 9, 16, 17, context, 1 + draw(context)};
      int n = s == 3 && seed % 2 == 0 ? 0 : usual[draw(8)];
      if (n > 0 && n < shortest) n = shortest;
      if (n > context) n = context;
      lengths.push_back(n);
      for (int t = 0; t < context; ++t) {
        int const id = t < n ? draw(words) : -1;
        padded.push_back(id);
        if (t < n) dense.push_back(id);
        if constexpr (by_row) {
          label const target = t + 1 < n && draw(6) > 0 ? draw(words) : -1;
          padded_labels.push_back(target);
          if (t < n) dense_labels.push_back(target);
        }
      }
      if constexpr (!by_row)
        for (int k = 0; k < Trainer::labels_per_sample; ++k)
          padded_labels.push_back(label(draw(2)));
    }
    if (!by_row) dense_labels = padded_labels;
  }
  typename Trainer::batch whole() const { return {padded, padded_labels}; }
  template <class Several>
  typename Several::batch padded_batch() const {
    return {padded, padded_labels};
  }
  template <class Several>
  typename Several::batch ragged() const {
    typename Several::batch b{dense, dense_labels};
    return b.set_lengths(lengths);
  }
};

}  // namespace laws
