// SPDX-License-Identifier: BSL-1.0
//
// From token ids to vectors, and where in the sequence they stand.
#pragma once

#include <pipe/graph/builder.hpp>

namespace pp {

/// y[t] = table[id[t]]; the vocabulary is the input's.
///
/// shape:  ids (T) -> (T, Width); table[V, Width], initially normal with deviation 0.02 (GPT-2)
template <int Width>
struct Embedding {
  static constexpr bool embeds = true;
  template <class Builder>
  static constexpr void describe(Builder& b) {
    if (!b.needs_ids() || !b.needs_positive(Width)) return;
    int const vocabulary = b.current().vocabulary;
    operand const table = b.parameter(vocabulary, Width, {distribution::normal, 0.02f}, true, {"weight"});
    b.set(b.lookup(b.current(), table, vocabulary, Width));
  }
};

/// y[t] = x[t] + table[t]: learned positions, initially normal with deviation 0.02 (GPT-2).
struct Positions {
  template <class Builder>
  static constexpr void describe(Builder& b) {
    if (!b.needs_numbers()) return;
    shape const form = b.current().form;
    operand const table = b.parameter(form.rows(), form.columns(), {distribution::normal, 0.02f}, true, {"weight"});
    b.set(b.row_bias(b.current(), table));
  }
};

/// y[t] = x[t] + sines and cosines of t at wavelengths from 2 pi to 20000 pi (Vaswani et al., 2017): not trained.
struct SinusoidalPositions {
  template <class Builder>
  static constexpr void describe(Builder& b) {
    if (!b.needs_numbers()) return;
    shape const form = b.current().form;
    b.set(b.row_bias(b.current(), b.constant_table(form.rows(), form.columns(), {distribution::sinusoidal, 10000})));
  }
};

}  // namespace pp
