// SPDX-License-Identifier: BSL-1.0
//
// Values and layers with names: a skip between any two places, further inputs, weights that are
// shared. A named value is carried from stage to stage beside the main one, so it works under every
// cut and every schedule.
#pragma once

#include <type_traits>

#include <pipe/base/text.hpp>
#include <pipe/graph/builder.hpp>
#include <pipe/nn/embedding.hpp>
#include <pipe/nn/input.hpp>

namespace pp {

/// Keeps the current value under a name, for any number of later readers; the value itself goes on
/// unchanged. A second Stash of the same name replaces the first, which must have been read.
template <text Key>
struct Stash {
  static constexpr text key = Key;
  template <class Builder>
  static constexpr void describe(Builder& b) {
    b.stash(Key.view());
  }
};

/// How a popped value joins the current one: along the last extent, the current value first.
/// Without it they are added.
struct Concat {
  static constexpr auto option = option_kind::join;
};

/// Adds a stashed value of the same shape, or concatenates it.
///
/// shape:  (..., C) and stashed (..., C) -> (..., C); Concat: (..., C) and (..., S) -> (..., C + S)
template <text Key, class... How>
struct Pop {
  static constexpr text key = Key;
  using options = layers<How...>;
  static constexpr unsigned takes = option_kinds(option_kind::join);
  template <class Builder>
  static constexpr void describe(Builder& b) {
    if (!b.needs_numbers()) return;
    handle const x = b.current(), z = b.recall(Key.view());
    if (!b.ok()) return;
    if (z.is_ids) return b.complain(fault_kind::needs_real_numbers, shape{}, z.form);
    if constexpr (sizeof...(How) == 0) {
      if (!(z.form == x.form)) return b.complain(fault_kind::popped_shape_differs, x.form, z.form);
      b.set(b.add(x, z));
    } else {
      if (!(z.form.with_columns(1) == x.form.with_columns(1)))
        return b.complain(fault_kind::popped_shape_differs, x.form, z.form);
      b.set(b.concat(x, z));
    }
  }
};

namespace detail {

/// A layer with a name, and a further input with one: see Named.
template <text Name, class L>
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
template <text Name, class I>
struct input_with_name {
  static constexpr handle input = I::input;
  template <class Builder>
  static constexpr void describe(Builder& b) {
    b.further_input(input);
    b.name_input(Name.view());
  }
};

}  // namespace detail

/// Gives a layer a name: in weight files, and for Tied. Around an input item it is a further input,
/// which enters here: the value before it must have been stashed.
///
///     Named<"tokens", Embedding<384>>        Named<"target", Tokens<256, 64>>
///
/// law: no two layers of one list have the same name, nor have two inputs of a model
template <text Name, class L>
struct Named : std::conditional_t<detail::input_item<L>, detail::input_with_name<Name, L>,
                                  detail::layer_with_name<Name, L>> {
  static constexpr text name = Name;
};

/// The layer that was given this name, once more and with the same weights. An Embedding that gets
/// numbers instead of ids is the output projection: logits = x table', as GPT-2's head.
///
/// law: the gradient of a shared weight is the sum over its places in the order of the model,
///      whatever the cut
template <text Name>
struct Tied {
  static constexpr text tied_name = Name;
  template <class Builder>
  static constexpr void describe(Builder& b) {
    using L = named_layer<Name, typename Builder::leaves>;
    if (!b.needs_named(Name.view())) return;
    if constexpr (requires { L::embeds; })
      if (!b.current().is_ids) return b.set(b.matmul_transposed(b.current(), b.tied(Name.view())));
    if constexpr (!std::is_void_v<L>) b.template again<L>(Name.view());
  }
};

}  // namespace pp
