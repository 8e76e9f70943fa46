// SPDX-License-Identifier: BSL-1.0
//
// Named values and layers: a skip connection between any two places, further inputs, shared
// weights. A named value is sent from stage to stage beside the main one, so it works with every
// partition and every schedule.
#pragma once

#include <type_traits>

#include <pipe/base/text.hpp>
#include <pipe/graph/builder.hpp>
#include <pipe/nn/embedding.hpp>
#include <pipe/nn/input.hpp>
#include <pipe/nn/join.hpp>

namespace pp {

/// Stores the current value under a name, for any number of later readers, and passes it on
/// unchanged. A second Stash of the same name replaces the first, which must have been read.
template <Text Key>
struct Stash {
  static constexpr Text key = Key;
  template <class Builder>
  static constexpr void describe(Builder& b) {
    b.stash(Key.view());
  }
};

/// Adds a stashed value of the same shape to the current one or, with an option, joins them in
/// another way.
///
/// shape:  (..., C) and stashed (..., C) -> (..., C); Concat: (..., C) and (..., S) -> (..., C +
/// S);
///         Dot, CosineSimilarity, PairwiseDistance: -> (..., 1)
template <Text Key, class... How>
struct Pop
    : detail::joining<detail::option_or<detail::option_kind::join, detail::add_both, How...>> {
  static constexpr Text key = Key;
  using options = detail::layers<How...>;
  static constexpr auto takes = detail::option_kinds(detail::option_kind::join);
  template <class Builder>
  static constexpr void describe(Builder& b) {
    if (!b.needs_numbers()) return;
    detail::handle const x = b.current(), z = b.recall(Key.view());
    if (!b.ok()) return;
    if (z.is_ids) return b.report(wrong::layer_needs_real_numbers_but_gets_token_ids, z.form);
    using how = detail::option_or<detail::option_kind::join, detail::add_both, How...>;
    if (!detail::can_join<how>(x.form, z.form))
      return b.report_name(wrong::popped_value_must_have_the_shape_of_the_current_one, x.form,
                           z.form);
    b.set(detail::join_values<how>(b, x, z, false));
  }
};

/// Makes a stashed value the current one, in place of that before it, which must have been stashed
/// as well: with Stash and Pop any graph without cycles is a list of layers.
///
/// shape:  any -> that of the stashed value
template <Text Key>
struct Recall {
  static constexpr Text key = Key;
  template <class Builder>
  static constexpr void describe(Builder& b) {
    detail::handle const z = b.recall(Key.view());
    if (!b.is_kept(b.current()))
      return b.report(wrong::value_must_be_stashed_before_another_replaces_it, b.current().form);
    if (b.ok()) b.set(z);
  }
};

namespace detail {

/// The layer of Named around a layer.
template <Text Name, class L>
struct layer_with_name {
  using layer = L;
  using parts = layers<L>;
  static constexpr int times = 1;

  template <class Builder>
  static constexpr void enter(Builder& b) {
    b.begin_name(Name.view());
  }
  template <class Builder>
  static constexpr void leave(Builder& b) {
    b.end_name(Name.view());
  }
};
/// The layer of Named around an input item.
template <Text Name, class Item>
struct input_with_name {
  static constexpr handle input = Item::input;
  template <class Builder>
  static constexpr void describe(Builder& b) {
    b.further_input(input);
    b.name_input(Name.view());
  }
};

}  // namespace detail

/// Names a layer, for weight files and for Tied. Around an input item it is a further input, which
/// becomes the current value here: the value before it must have been stashed.
///
///     Named<"tokens", Embedding<384>>        Named<"target", Tokens<256, 64>>
///
/// law: names are unique among the layers of one list, and among the inputs of a model
template <Text Name, class L>
struct Named : std::conditional_t<detail::input_item<L>, detail::input_with_name<Name, L>,
                                  detail::layer_with_name<Name, L>> {
  static constexpr Text name = Name;
};

/// The layer with this name again, with the same weights. A tied Embedding whose input is real
/// numbers is the output projection: logits = x table', as in GPT-2's head.
///
/// law: the gradient of a shared weight is the sum over its places in model order, for every
///      partition
template <Text Name>
struct Tied {
  static constexpr Text tied_name = Name;
  template <class Builder>
  static constexpr void describe(Builder& b) {
    using L = detail::named_layer<Name, typename Builder::leaves>;
    if (!b.needs_named(Name.view())) return;
    if constexpr (requires { L::embeds; })
      if (!b.current().is_ids) return b.set(b.matmul_transposed(b.current(), b.tied(Name.view())));
    if constexpr (!std::is_void_v<L>) b.template tie<L>(Name.view());
  }
};

}  // namespace pp
