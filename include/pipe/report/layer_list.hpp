// SPDX-License-Identifier: BSL-1.0
//
// The layers of a stage as the user spelled them, with repetitions counted: `Embedding<96>,
// Positions, (A, B) x2`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <pipe/base/type_name.hpp>
#include <pipe/graph/layers.hpp>
#include <pipe/nn/group.hpp>
#include <pipe/nn/model.hpp>

namespace pp::detail {

/// The names of a model's leaf types, by leaf index.
template <class... L>
std::vector<std::string_view> leaf_names(layers<L...>) {
  return {type_name<as_written<L>>()...};
}

/// A list of names with consecutive repetitions counted. At each position the repetition that
/// covers most names is chosen, among equal ones that with the shortest period.
///
/// cost: at most cubic in the number of names
template <class = void>
std::string list_with_repetitions(std::vector<std::string_view> const& names) {
  auto const repeats = [&](std::size_t from, std::size_t length) {
    std::size_t times = 1;
    auto const same = [&](std::size_t at) {
      for (std::size_t i = 0; i < length; ++i)
        if (names[at + i] != names[from + i]) return false;
      return true;
    };
    while (from + (times + 1) * length <= names.size() && same(from + times * length)) ++times;
    return times;
  };
  std::string text;
  for (std::size_t at = 0; at < names.size();) {
    std::size_t best = 1, times = 1;
    for (std::size_t length = 1; 2 * length <= names.size() - at; ++length)
      if (std::size_t const t = repeats(at, length); t > 1 && t * length > best * times)
        best = length, times = t;
    text += at > 0 ? ", " : "";
    text += best > 1 ? "(" : "";
    for (std::size_t i = 0; i < best; ++i) text.append(i > 0 ? ", " : "").append(names[at + i]);
    text += best > 1 ? ")" : "";
    if (times > 1) text += " x" + std::to_string(times);
    at += best * times;
  }
  return text;
}

/// Whether L is a CutInside.
template <class L>
inline constexpr bool cuts_inside = false;
template <class... L>
inline constexpr bool cuts_inside<CutInside<L...>> = true;

/// Appends the leaves of L, which are not opened further, in execution order. Inside: of a
/// CutInside
template <class Leaves, class L, bool Inside = false>
void append_leaves(std::vector<int>& list) {
  constexpr bool inside = Inside || cuts_inside<L>;
  auto const append_parts = [&]<class... P>(layers<P...>) {
    (append_leaves<Leaves, P, inside>(list), ...);
  };
  if constexpr (opened<L>)
    for (int i = 0; i < L::times; ++i) append_parts(typename L::parts{});
  else if constexpr (inside && joins_parts<L>)
    append_parts(typename L::parts{});
  else
    list.push_back(leaf_index<L>(Leaves{}));
}
/// The leaf indices of all items of a model, repetitions written out, in execution order.
template <class Leaves, class... Items>
std::vector<int> leaves_in_order(lowering<Items...>) {
  std::vector<int> list;
  (append_leaves<Leaves, Items>(list), ...);
  return list;
}

/// Text of layers [first, end) of model M with graph g, and of its loss if they are the last ones.
/// A layer without ops (Stash, Flatten, a further input) is listed before the next layer with ops.
template <class M>
std::string list_layers(graph_view const& g, int first, int end) {
  std::vector<std::string_view> const leaf = leaf_names(typename M::leaves{});
  std::vector<int> const order = leaves_in_order<typename M::leaves>(typename M::described{});
  int const units = g.units.count;
  std::vector<std::string_view> names;
  int u = 0;
  for (std::size_t i = 1; i < order.size(); ++i) {  // the first is the input
    // Whether this leaf has the ops of unit u. A leaf without ops is listed with the next unit.
    bool const works = u < units && g.units[u].leaf == order[i];
    int past = u < units ? u + 1 : units;
    while (works && past < units && g.units[past].continues) ++past;
    if (past > first && (u < units ? u : units - 1) < end)
      names.push_back(leaf[std::size_t(order[i])]);
    if (works) u = past;
  }
  return list_with_repetitions(names);
}

}  // namespace pp::detail
