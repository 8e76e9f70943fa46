// SPDX-License-Identifier: BSL-1.0
//
// The layers of a stage in the user's words, with repetitions counted: `Embedding<96>, Positions, (A, B) x2`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <pipe/base/type_name.hpp>
#include <pipe/graph/layers.hpp>

namespace pp {

/// The names of a model's leaf types, by leaf index.
template <class... L>
std::vector<std::string_view> leaf_names(layers<L...>) {
  return {type_name<L>()...};
}

/// A list of names with its runs of repeated pieces counted; of all pieces that repeat at a place the one is taken that
/// covers most, and of these the shortest.
inline std::string list_with_repetitions(std::vector<std::string_view> const& names) {
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
      if (std::size_t const t = repeats(at, length); t > 1 && t * length > best * times) best = length, times = t;
    text += at > 0 ? ", " : "";
    text += best > 1 ? "(" : "";
    for (std::size_t i = 0; i < best; ++i) text.append(i > 0 ? ", " : "").append(names[at + i]);
    text += best > 1 ? ")" : "";
    if (times > 1) text += " x" + std::to_string(times);
    at += best * times;
  }
  return text;
}

/// Layers [first, end) of model M, and its loss if they are the last.
template <class M>
std::string list_layers(int first, int end) {
  std::vector<std::string_view> const leaf = leaf_names(typename M::leaves{});
  std::vector<std::string_view> names;
  for (int u = first; u < end; ++u) names.push_back(leaf[std::size_t(M::graph.units[u].leaf)]);
  if (end == M::graph.size.units) names.push_back(leaf[std::size_t(M::graph.loss().leaf)]);
  return list_with_repetitions(names);
}

}  // namespace pp
