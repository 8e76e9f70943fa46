// SPDX-License-Identifier: BSL-1.0
//
// Diagnostics of a wrong model, one readable line each. Passes record the first fault as a value;
// at the outermost template the value becomes the type wrong::Layer, which is never defined
// (base/diagnosis.hpp). Its arguments say which layer is wrong, what is wrong, what was expected
// and what was found.
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

#include <pipe/base/diagnosis.hpp>
#include <pipe/base/shape.hpp>
#include <pipe/graph/fault.hpp>
#include <pipe/graph/layers.hpp>

namespace pp {

namespace wrong {
/// Words of the messages, such as `Expected<128, 384>`, `Found<128, 100>`, `Called<'s', 'k', 'i',
/// 'p'>` and `Missing<derivative>`.
///
/// Expected and Found have the extents of a shape, or one number; a ratio is numerator,
/// denominator.
template <int... Extents>
struct Expected;
template <int... Extents>
struct Found;
/// A user-given name.
template <char... Letters>
struct Called;
/// Missing: a member that the type lacks. Function, Value: a member that is not constexpr.
template <member What>
struct Missing;
template <member What>
struct Function;
template <member What>
struct Value;
}  // namespace wrong

namespace detail {

/// Expected or Found with the extents of S.
template <template <int...> class Word, sample_shape S>
constexpr auto spell() {
  return []<std::size_t... Is>(std::index_sequence<Is...>) {
    return word<Word<S.extent[Is]...>>{};
  }(std::make_index_sequence<S.rank>{});
}

/// A name, letter by letter: the only spelling of a name that every compiler prints readably.
template <Text Letters>
constexpr auto spell_text() {
  return []<std::size_t... Is>(std::index_sequence<Is...>) {
    return word<wrong::Called<Letters.characters[Is]...>>{};
  }(std::make_index_sequence<Letters.view().size()>{});
}
/// The name in layer type L; an empty name if L has none.
template <class L>
constexpr auto spell_name(word<L>) {
  if constexpr (requires { L::key; })
    return spell_text<L::key>();
  else if constexpr (requires { L::tied_name; })
    return spell_text<L::tied_name>();
  else if constexpr (requires { L::name.characters; })
    return spell_text<L::name>();
  else
    return word<wrong::Called<>>{};
}

/// Entry `Index` of a list of types; void if there is no such entry.
template <int Index, class... T>
constexpr auto spell_leaf(layers<T...>) {
  if constexpr (Index >= 0 && Index < int(sizeof...(T)))
    return decltype(select_leaf<std::size_t(Index)>(
        std::declval<leaf_table<std::index_sequence_for<T...>, layers<T...>> const&>())){};
  else
    return word<void>{};
}

/// The type under which a layer is reported.
template <class L>
constexpr auto spell_written(word<L>) {
  return written_type<L>();
}

/// The option of leaf type L that a fault is about; void if the fault is not about an option.
template <int Index, class L>
constexpr auto spell_option(word<L>) {
  if constexpr (Index >= 0)
    return spell_leaf<Index>(typename L::options{});
  else
    return word<void>{};
}

/// Words in a row.
template <class... Words>
struct word_list {};
template <class... First, class... Second>
constexpr word_list<First..., Second...> operator+(word_list<First...>, word_list<Second...>) {
  return {};
}
/// A list of the word if IsSet, or an empty list.
template <bool IsSet, class Word>
constexpr auto if_set(word<Word>) {
  if constexpr (IsSet)
    return word_list<Word>{};
  else
    return word_list<>{};
}
/// Missing, Function or Value with member Which; an empty list for wrong::member::none.
template <template <wrong::member> class Word, wrong::member Which>
constexpr auto spell_member() {
  return if_set<(Which != wrong::member::none)>(word<Word<Which>>{});
}

/// The message with these words: wrong::Layer, or wrong::Use if Position is -1.
template <wrong::diagnosis What, int Position, class... Words>
constexpr auto say_at(word_list<Words...>) {
  if constexpr (Position < 0)
    return std::type_identity<wrong::Use<What, Words...>>{};
  else
    return std::type_identity<wrong::Layer<Position, What, Words...>>{};
}

/// The message of fault `F` in a model with leaf layer types `Leaves`. `Name`: where two parameters
/// have the same name in files, a list with this name.
template <model_fault F, class Leaves, class Name = word_list<>>
constexpr auto diagnose() {
  if constexpr (F.ok()) {
    return std::type_identity<nothing_wrong>{};
  } else {
    constexpr auto type = spell_written(spell_leaf<F.leaf>(Leaves{}));
    return say_at<F.what, F.layer>(
        if_set<F.says_type>(type) + if_set<(F.option >= 0)>(spell_option<F.option>(type)) +
        if_set<F.says_name>(spell_name(type)) + Name{} +
        if_set<(F.expected.rank > 0)>(spell<wrong::Expected, F.expected>()) +
        if_set<(F.found.rank > 0)>(spell<wrong::Found, F.found>()) +
        spell_member<wrong::Missing, F.missing>() + spell_member<wrong::Function, F.function>() +
        spell_member<wrong::Value, F.value>());
  }
}

}  // namespace detail

}  // namespace pp
