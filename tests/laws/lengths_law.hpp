// SPDX-License-Identifier: BSL-1.0
//
// The law of Lengths: documents of several lengths have the bits of the same documents padded to
// the context, in a pipeline without the option.
#pragma once

#include "catch.hpp"

#include <cstddef>
#include <random>
#include <vector>

#include <pipe/pipe.hpp>

#include "poisoned.hpp"

namespace laws {

/// Documents of these lengths, dense and padded, with drawn ids and labels, some of which are -1.
struct documents_of_lengths {
  std::vector<int> lengths, ids, labels, padded_ids, padded_labels;

  documents_of_lengths(std::vector<int> const& of, int context, int words, unsigned seed)
      : lengths(of) {
    std::mt19937 random(seed);
    for (int const n : lengths)
      for (int t = 0; t < context; ++t) {
        int const id = int(random() % unsigned(words)), label = int(random() % unsigned(words));
        bool const counts = t == 0 || random() % 6 > 0;
        padded_ids.push_back(t < n ? id : -1);
        padded_labels.push_back(t < n && counts ? label : -1);
        if (t < n) ids.push_back(id), labels.push_back(padded_labels.back());
      }
  }
};

/// Two steps on such documents: losses, norms, gradients and parameters have the same bits.
///
/// needs: Dense is Padded with Lengths, and other options that change no bit
template <class Padded, class Dense>
void keeps_bits_of_padding(std::vector<int> const& lengths) {
  constexpr int context = int(Padded::inputs_per_sample);
  constexpr int words = pp::detail::model_tables<typename Padded::model>::inputs[0].vocabulary;
  Padded padded({.seed = 7, .clip_norm = 1});
  Dense dense({.seed = 7, .clip_norm = 1});
  for (unsigned step = 1; step <= 2; ++step) {
    documents_of_lengths const d(lengths, context, words, step);
    typename Dense::batch ragged{d.ids, d.labels};
    ragged.set_lengths(d.lengths);
    poison(dense);
    pp::step_result const a = padded.step({d.padded_ids, d.padded_labels}), b = dense.step(ragged);
    CHECK(same(a.loss, b.loss));
    CHECK(same(a.gradient_norm, b.gradient_norm));
    CHECK(differences(padded, dense) == 0);
  }
}

}  // namespace laws
