// SPDX-License-Identifier: BSL-1.0
//
// Embeddings of token ids, of bags of ids, and of positions in the sequence.
#pragma once

#include <pipe/graph/builder.hpp>
#include <pipe/nn/initial.hpp>
#include <pipe/nn/loss_option.hpp>

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

/// An option of EmbeddingBag: an id that is left out of a bag, as -1 is: PyTorch's padding_idx. Its
/// row of the table is never read, and its gradient is zero.
template <int Id>
struct PaddingIndex {
  static constexpr auto option = detail::option_kind::padding_index;
  static constexpr detail::option_number number{Id >= 0, Id, 1};
  static constexpr int id = Id;
};

namespace detail {

/// The padding of a bag: the id of option O, or -1 if O is void.
template <class O>
constexpr int padding_of() {
  if constexpr (requires { O::id; })
    return O::id;
  else
    return -1;
}

}  // namespace detail

/// y = the mean or the sum of table[id] over the ids of a sample, its bag: PyTorch's EmbeddingBag.
/// A sample with fewer ids is filled up with -1; the vocabulary V is the input's. One op, and not
/// an Embedding before a pool: the rows of a bag are added where they are read, so no value has I *
/// Width numbers, forward or backward, and no kernel writes and reads them.
///
/// shape:   ids (I) -> (Width); table[V, Width], initially normal with deviation 0.02, where
///          PyTorch's is Init<Normal<1>>
/// options: Reduction<Mean> (default) or Reduction<Sum>, PaddingIndex, Init<...>
/// law:     ids that are -1 or the padding index add nothing and do not count in a mean; a bag of
///          such ids alone is zeros. The table's gradient adds the ids of a micro-batch in order
/// cost:    forward reads I rows of the table; the gradient adds dy to as many
template <int Width, class... Options>
struct EmbeddingBag {
  using options = detail::layers<Options...>;
  static constexpr auto takes =
      detail::option_kinds(detail::option_kind::initial, detail::option_kind::reduction,
                           detail::option_kind::padding_index);
  static constexpr bool embeds = true;
  static constexpr bool is_mean =
      !detail::option_or<detail::option_kind::reduction, Reduction<Mean>, Options...>::sums;
  static constexpr int padding =
      detail::padding_of<detail::option_of<detail::option_kind::padding_index, Options...>>();
  template <class Builder>
  static constexpr void describe(Builder& b) {
    if (!b.needs_ids() || !b.needs_positive(Width)) return;
    int const vocabulary = b.current().vocabulary;
    if (padding >= vocabulary)
      return b.report(wrong::padding_index_is_outside_of_the_vocabulary, sample_shape(vocabulary),
                      sample_shape(padding));
    detail::initializer const initial =
        detail::initial_table(detail::initial_of<Options...>(b.scope().initial), vocabulary, Width);
    detail::operand const table = b.parameter(vocabulary, Width, initial, true, {"weight"});
    b.set(b.bag(b.current(), table,
                {.vocabulary = vocabulary, .padding = padding, .is_mean = is_mean}, Width));
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
    sample_shape const form = b.current().form;
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
    sample_shape const form = b.current().form;
    b.set(b.row_bias(b.current(), b.constant_table(form.rows(), form.columns(),
                                                   {distribution::sinusoidal, 10000})));
  }
};

}  // namespace pp
