// SPDX-License-Identifier: BSL-1.0
//
// The inputs of a model by name: what `Named<"target", Tokens<256, 64>>` in the list is to a batch.
#pragma once

#include <string_view>
#include <type_traits>
#include <utility>

#include <pipe/base/text.hpp>
#include <pipe/graph/diagnostics.hpp>
#include <pipe/graph/graph.hpp>

namespace pp {

namespace wrong {
template <class... What>
struct model_has_no_input_with_that_name;
}  // namespace wrong

template <text Name>
struct Name_;

/// The name of input I of model M; empty if it has none.
template <class M, int I>
constexpr std::string_view input_name() {
  using item = leaf_at<M::graph.inputs[I].leaf, typename M::leaves>;
  if constexpr (has_name<item>)
    return item::name.view();
  else
    return {};
}

template <class M, text Name>
constexpr int find_input() {
  return []<int... I>(std::integer_sequence<int, I...>) {
    int found = -1;
    ((found = found < 0 && input_name<M, I>() == Name.view() ? I : found), ...);
    return found;
  }(std::make_integer_sequence<int, M::graph.size.inputs>{});
}

template <text Name, bool Found>
constexpr auto diagnose_input() {
  if constexpr (Found)
    return std::type_identity<nothing_wrong>{};
  else
    return std::type_identity<wrong::model_has_no_input_with_that_name<Name_<Name>>>{};
}

/// Which input of M has that name.
template <class M, text Name>
constexpr int input_named() {
  constexpr int found = find_input<M, Name>();
  static_assert(accepted<typename decltype(diagnose_input<Name, (found >= 0)>())::type>::value);
  return found < 0 ? 0 : found;
}

/// What it is made of.
template <class M, text Name, class Element>
using named_input = std::conditional_t<M::graph.inputs[input_named<M, Name>()].is_ids, int, Element>;

}  // namespace pp
