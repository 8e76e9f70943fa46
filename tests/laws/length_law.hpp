// SPDX-License-Identifier: BSL-1.0
//
// The law of Lengths: samples of several lengths have the bits of the same samples padded to the
// context, for a model with an output for each position. Before each run all memory of values is
// full of what is no number.
#pragma once

#include "catch.hpp"

#include <cstddef>
#include <vector>

#include "laws/data.hpp"
#include "laws/documents.hpp"

namespace laws {

/// One: without Lengths
template <class One, class Several>
void has_the_bits_of_padding() {
  INFO(Several::plan().schedule << ", " << Several::plan().stage_count << " stages");
  One padded({.seed = 5, .clip_norm = 1});
  Several dense({.seed = 5, .clip_norm = 1});
  for (unsigned step = 1; step <= 3; ++step) {
    documents<One> const of(step, One::samples - int(step % 2));
    auto const given = of.template ragged<Several>();
    poison(dense);
    CHECK(same_bits(padded.evaluate(of.whole()), dense.evaluate(given)));
    poison(dense);
    pp::step_result const a = padded.step(of.whole()), b = dense.step(given);
    CHECK(same_bits(a.loss, b.loss));
    CHECK(same_bits(a.gradient_norm, b.gradient_norm));
    auto const x = padded.parameters(), y = dense.parameters();
    for (std::size_t i = 0; i < x.size(); ++i) {
      CHECK(same_numbers(x[i].values, y[i].values));
      CHECK(same_numbers(x[i].gradients, y[i].gradients));
    }
    constexpr std::size_t context = std::size_t(One::inputs_per_sample),
                          columns = std::size_t(One::outputs_per_sample) / context;
    std::vector<float> whole(of.padded.size() * columns), rows(of.dense.size() * columns);
    padded.forward(of.padded, whole);
    dense.forward(given, rows);
    std::size_t at = 0, differ = 0;
    for (std::size_t i = 0; i < whole.size(); ++i) {
      std::size_t const row = i / columns, sample = row / context;
      if (int(row % context) < of.lengths[sample]) differ += whole[i] != rows[at++];
    }
    CHECK(differ == 0);
    CHECK(at == rows.size());
  }
}

}  // namespace laws
