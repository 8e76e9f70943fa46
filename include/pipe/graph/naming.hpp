// SPDX-License-Identifier: BSL-1.0
//
// Named things of a builder, as plain records: values, layers whose parameters are shared, the
// layers around the present one.
#pragma once

#include <cstddef>
#include <string_view>
#include <type_traits>

#include <pipe/base/static_vector.hpp>
#include <pipe/graph/handle.hpp>
#include <pipe/graph/layers.hpp>

namespace pp {

/// A value that was stashed, where, and whether it has been read.
struct named_value {
  std::string_view name;
  handle value;
  short position = 0, leaf = 0;
  bool read = false;
};
/// A name that some Tied asks for: how many layers have it, how many of these are complete, and the
/// last one's first parameter.
struct wanted_name {
  std::string_view name{};
  int times = 0, ended = 0, first = 0;
};
/// All of them.
template <std::size_t Capacity>
struct wanted_names {
  static_vector<wanted_name, Capacity> all;
  int open = 0;  // layers around the present place that have one

  /// Those that some of these layers ask for, each once.
  template <class... L>
  constexpr void list(layers<L...>) {
    auto const take = [&]<class T>(std::type_identity<T>) {
      if constexpr (requires { T::tied_name; }) {
        for (wanted_name const& p : all)
          if (p.name == T::tied_name.view()) return;
        all.push_back(wanted_name{T::tied_name.view()});
      }
    };
    (take(std::type_identity<L>{}), ...);
  }
  /// needs: the name is one of them
  constexpr wanted_name const& of(std::string_view name) const {
    int i = 0;
    while (all[i].name != name) ++i;
    return all[i];
  }
  /// A layer of that name begins, whose first parameter will be this one; and ends.
  constexpr void begin(std::string_view name, int parameter) {
    for (wanted_name& p : all)
      if (p.name == name) ++p.times, ++open, p.first = parameter;
  }
  constexpr void end(std::string_view name) {
    for (wanted_name& p : all)
      if (p.name == name) ++p.ended, --open;
  }
};
/// A parameter that may be shared, or is: its extents, the one it was first, and whether that is
/// trained.
struct shared_extents {
  shape form{};
  int parameter = 0, owner = 0;
  bool trained = true;
};

/// The names of the layers before the present one in its list, and in the lists around it.
template <std::size_t Capacity>
struct sibling_names {
  static_vector<std::string_view, Capacity> all;
  std::size_t first = 0;  // of the present list

  /// Notes a name. False if a layer before in the same list has it.
  constexpr bool add(std::string_view name) {
    for (std::size_t i = first; i < all.size(); ++i)
      if (all[i] == name) return false;
    all.push_back(name);
    return true;
  }
  /// Begins a list inside the present one; what it returns ends it.
  constexpr std::size_t enter() {
    std::size_t const outer = first;
    first = all.size();
    return outer;
  }
  constexpr void leave(std::size_t outer) {
    all.count = first;
    first = outer;
  }
};

}  // namespace pp
