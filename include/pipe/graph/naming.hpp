// SPDX-License-Identifier: BSL-1.0
//
// The records of a builder for names: stashed values, layers whose parameters are shared, and the
// names of sibling layers.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <string_view>
#include <type_traits>

#include <pipe/base/static_vector.hpp>
#include <pipe/graph/handle.hpp>
#include <pipe/graph/layers.hpp>

namespace pp::detail {

/// A stashed value: its name, the place of its Stash, and whether it has been read.
struct named_value {
  std::string_view name;
  handle value;
  short position = 0, leaf = 0;
  bool read = false;
};
/// A name that a Tied refers to: how many layers have it, how many of these layers are complete,
/// and the first parameter of the last of them.
struct wanted_name {
  std::string_view name{};
  int times = 0, ended = 0, first = 0;
};
/// The names that the Tied layers of a model refer to.
template <std::size_t Capacity>
struct wanted_names {
  static_vector<wanted_name, Capacity> all;
  int open = 0;  // layers with such a name around the layer being described

  /// Lists the names that the given layers refer to, each once.
  template <class... L>
  constexpr void list(layers<L...>) {
    auto const take = [&]<class T>(std::type_identity<T>) {
      if constexpr (requires { T::tied_name; }) {
        for (wanted_name const& p : all)
          if (p.name == T::tied_name.view()) return;
        all.push_back(wanted_name{T::tied_name.view()});
      }
    };
    (void)std::initializer_list<int>{(take(std::type_identity<L>{}), 0)...};
  }
  template <int Count>
  constexpr void list(counted_leaves<Count>) {}
  /// The entry of a name. needs: the name is listed
  constexpr wanted_name const& of(std::string_view name) const {
    int i = 0;
    while (all[i].name != name) ++i;
    return all[i];
  }
  /// Called where a layer with a name begins; `parameter`: the number of its first parameter.
  constexpr void begin(std::string_view name, int parameter) {
    for (wanted_name& p : all)
      if (p.name == name) ++p.times, ++open, p.first = parameter;
  }
  /// Called where a layer with a name ends: from here on other layers may be tied to it.
  constexpr void end(std::string_view name) {
    for (wanted_name& p : all)
      if (p.name == name) ++p.ended, --open;
  }
};
/// A parameter that is shared or may be: its extents, its number, its owner (the first parameter in
/// the same memory), and whether the owner is trained.
struct shared_extents {
  sample_shape form{};
  int parameter = 0, owner = 0;
  bool trained = true;
};

/// The names of the earlier layers of the present list, and of the lists around it.
template <std::size_t Capacity>
struct sibling_names {
  static_vector<std::string_view, Capacity> all;
  std::size_t first = 0;  // of the present list

  /// Adds a name. False if an earlier layer of the same list has it.
  constexpr bool add(std::string_view name) {
    for (std::size_t i = first; i < all.size(); ++i)
      if (all[i] == name) return false;
    all.push_back(name);
    return true;
  }
  /// Begins a list inside the present one; pass the result to leave().
  constexpr std::size_t enter() {
    std::size_t const outer = first;
    first = all.size();
    return outer;
  }
  /// The end of a list of siblings: its names may be used again.
  constexpr void leave(std::size_t outer) {
    all.count = first;
    first = outer;
  }
};

}  // namespace pp::detail
