// SPDX-License-Identifier: BSL-1.0
//
// Embeddings of token ids, and of positions in the sequence.
#pragma once

#include <pipe/graph/builder.hpp>
#include <pipe/nn/initial.hpp>

namespace pp {

namespace detail {

/// The initial values of a table: those of `start`, with the table's width as the number of inputs
/// (as torch.nn.init counts them), or else normal with deviation 0.02.
constexpr initializer initial_table(initial_rules start, int rows, int width) {
  return start.weights.of(width, rows, initializer{distribution::normal, 0.02f});
}

}  // namespace detail

/// y[t] = table[id[t]]. The vocabulary V is the input's.
///
/// shape:  ids (T) -> (T, Width); table[V, Width], initially normal with deviation 0.02 (GPT-2)
/// options: Init<...>
/// law:     a row of id -1 (padding) is zero and adds nothing to the table's gradient
/// cost:    forward a copy of T rows; the gradient adds the T rows of dy to a table of V rows
template <int Width, class... Options>
struct Embedding {
  using options = detail::layers<Options...>;
  static constexpr auto takes = detail::option_kinds(detail::option_kind::initial);
  static constexpr bool embeds = true;
  template <class Builder>
  static constexpr void describe(Builder& b) {
    if (!b.needs_ids() || !b.needs_positive(Width)) return;
    int const vocabulary = b.current().vocabulary;
    detail::initializer const initial =
        detail::initial_table(detail::initial_of<Options...>(b.scope().initial), vocabulary, Width);
    detail::operand const table = b.parameter(vocabulary, Width, initial, true, {"weight"});
    b.set(b.lookup(b.current(), table, vocabulary, Width));
  }
};

/// y[t] = x[t] + table[t]: learned positions, initially normal with deviation 0.02 (GPT-2).
///
/// shape:  (T, C) -> (T, C); table[T, C]
/// law:    the gradient of table[t] is the sum of dy[t] over the samples of the mini-batch
struct Positions {
  template <class Builder>
  static constexpr void describe(Builder& b) {
    if (!b.needs_numbers()) return;
    shape const form = b.current().form;
    detail::initializer const initial =
        detail::initial_table(b.scope().initial, form.rows(), form.columns());
    detail::operand const table =
        b.parameter(form.rows(), form.columns(), initial, true, {"weight"});
    b.set(b.row_bias(b.current(), table));
  }
};

/// y[t] = x[t] + sines and cosines of t at wavelengths from 2 pi to 20000 pi (Vaswani et al.,
/// 2017). Not trained.
///
/// shape:  (T, C) -> (T, C)
struct SinusoidalPositions {
  template <class Builder>
  static constexpr void describe(Builder& b) {
    if (!b.needs_numbers()) return;
    shape const form = b.current().form;
    b.set(b.row_bias(b.current(), b.constant_table(form.rows(), form.columns(),
                                                   {distribution::sinusoidal, 10000})));
  }
};

}  // namespace pp
