// SPDX-License-Identifier: BSL-1.0
//
// The arrays of a batch: spans of numbers or ids, and a model's further inputs by name, such as
// `Named<"target", Tokens<256, 64>>`. Wrong element types and unknown names are one-line errors.
#pragma once

#include <concepts>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#include <pipe/base/device_span.hpp>
#include <pipe/base/text.hpp>
#include <pipe/graph/diagnostics.hpp>
#include <pipe/graph/model_tables.hpp>

namespace pp {

namespace wrong {
/// Words of their messages.
template <class Element>
struct ExpectedElement;
template <class Element>
struct FoundElement;
}  // namespace wrong

namespace detail {

/// Whether a model's first input is images: numbers by height, width and channel.
template <class M>
constexpr bool has_images() {
  constexpr auto of = model_tables<M>::inputs[0];
  return !of.is_ids && of.form.rank == 3;
}

/// Element types of a list, found and expected, as words of a diagnosis. Spelled through functions,
/// because nvcc would otherwise print an alias, such as the list's value_type.
template <class Element>
constexpr word<wrong::FoundElement<Element>> spell_found(Element*) {
  return {};
}
template <class Element>
constexpr auto spell_expected() {
  if constexpr (std::is_same_v<Element, int>)
    return word<wrong::ExpectedElement<int>>{};
  else if constexpr (std::is_same_v<Element, float>)
    return word<wrong::ExpectedElement<float>>{};
  else
    return word<wrong::ExpectedElement<double>>{};
}

/// A span of T, constructible from everything that std::span<T> is. A list of other numbers is one
/// error, `Wrong`, which names Item, the model's item that the list is for. Reports: false for an
/// invalid model, whose own error has been reported already.
template <class T, wrong::diagnosis Wrong, class Item, bool Reports>
struct values_for : std::span<T> {
  constexpr values_for() = default;
  template <class List>
    requires std::constructible_from<std::span<T>, List>
  constexpr values_for(List&& list) : std::span<T>(std::forward<List>(list)) {}
  template <class First, class End>
    requires std::constructible_from<std::span<T>, First, End>
  constexpr values_for(First first, End end) : std::span<T>(first, end) {}

  template <class List>
    requires(!std::constructible_from<std::span<T>, List> && !device_list<List> &&
             requires(List& list) { std::data(list); })
  constexpr values_for([[maybe_unused]] List&& list) {
    if constexpr (Reports) {
      using diagnosis = decltype(say<Wrong>(word<Item>{}, spell_expected<std::remove_const_t<T>>(),
                                            spell_found(std::data(list))));
      static_assert(accepted<diagnosis>::value);
    }
  }
};

/// The element type of a list as a word of a diagnosis; none for what is no list.
template <class List>
constexpr auto spell_element([[maybe_unused]] List const& list) {
  if constexpr (requires { std::data(list); })
    return word_list<typename decltype(spell_found(std::data(list)))::type>{};
  else
    return word_list<>{};
}
/// One error for a third list in braces; for a pointer and a length, which are two values, too, as
/// this is compiled once.
template <class... Found>
constexpr void refuse_third_list(word_list<Found...>) {
  using diagnosis = decltype(diagnosis_of<wrong::further_inputs_are_given_by_name, Found...>());
  static_assert(accepted<diagnosis>::value);
}

/// A further input in a batch, which only an assignment sets: a third list in the braces of a batch
/// is one error.
template <class T>
struct further_values : std::span<T const> {
  constexpr further_values() = default;
  template <class List>
  constexpr further_values([[maybe_unused]] List const& list) {
    refuse_third_list(decltype(spell_element(list)){});
  }
  template <class List>
  constexpr further_values& operator=(List const& list) {
    std::span<T const>::operator=(list);
    return *this;
  }
};

/// The name of input Index of model M; empty for an unnamed one.
template <class M, int Index>
constexpr std::string_view input_name() {
  using item = leaf_at<model_tables<M>::inputs[Index].leaf, typename M::leaves>;
  if constexpr (has_name<item>)
    return item::name.view();
  else
    return {};
}

/// Number of M's input with that name, or -1.
template <class M, Text Name>
constexpr int find_input() {
  return []<int... Is>(std::integer_sequence<int, Is...>) {
    int found = -1;
    ((found = found < 0 && input_name<M, Is>() == Name.view() ? Is : found), ...);
    return found;
  }(std::make_integer_sequence<int, M::graph_type::size.inputs>{});
}

/// The diagnosis of an access to M's input by name. An invalid model has been reported already.
template <class M, Text Name>
constexpr auto diagnose_name() {
  if constexpr (find_input<M, Name>() < 0 && M::valid)
    return say<wrong::model_has_no_input_with_that_name>(word<M>{}, spell_text<Name>());
  else
    return std::type_identity<nothing_wrong>{};
}

/// The item of input Index in M's list, and its element type: int for ids, else Number.
template <class M, int Index>
using input_item_of = leaf_at<model_tables<M>::inputs[Index].leaf, typename M::leaves>;
template <class M, int Index, class Number>
using input_element = std::conditional_t<model_tables<M>::inputs[Index].is_ids, int, Number>;

}  // namespace detail

}  // namespace pp
