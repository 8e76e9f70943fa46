// SPDX-License-Identifier: BSL-1.0
//
// The names of a model's parameters in weight files: the path to the layer, as PyTorch names the
// modules of a Sequential, and the parameter's own name in it: `2.3.0.1.in_proj_weight`.
// docs/reference/files.md has the table.
#pragma once

#include <cstddef>
#include <string_view>

#include <pipe/base/config.hpp>
#include <pipe/base/list.hpp>
#include <pipe/base/view.hpp>
#include <pipe/io/kept_text.hpp>
#include <pipe/io/row_list.hpp>
#include <pipe/nn/model.hpp>

namespace pp::detail {

/// Name and layout of a parameter in weight files.
struct parameter_name {
  static constexpr bool moves_by_bytes = true;

  kept_text name;
  bool transposed = false;  ///< the file holds [columns, rows]
};

/// A call that a layer description makes to its observer.
struct name_event {
  enum of : unsigned char { part, end_part, name, parameter } what = part;
  bool transposed = false;
  int number = 0;              // of the part or the parameter
  char const* text = nullptr;  // of a name, or of a parameter's own name
  std::size_t characters = 0;
};

/// Observer of a layer description that records what it is told, as a constant: so the layers are
/// described by the compiler once more, and not by code in the program.
///
/// Most: the number of events; 0: they are only counted
template <int Most>
struct name_recorder {
  list<name_event, Most> events;
  int count = 0;

  constexpr void add(name_event const& e) {
    if constexpr (Most > 0) events[count] = e;
    ++count;
  }
  constexpr void part(int i) { add({name_event::part, false, i, nullptr, 0}); }
  constexpr void end_part() { add({name_event::end_part, false, 0, nullptr, 0}); }
  /// A layer's name replaces its number in the path.
  constexpr void name(std::string_view given) {
    add({name_event::name, false, 0, given.data(), given.size()});
  }
  constexpr void parameter(int index, file_name const& file) {
    add({name_event::parameter, file.transposed, index, file.name,
         std::string_view(file.name).size()});
  }
};

/// The events of a model's description; none of a list in which some entry is no type.
template <class L>
struct described_names {
  static constexpr name_recorder<0> all{};
};
template <class... Items>
struct described_names<lowering<Items...>> {
  using L = lowering<Items...>;
  template <int Most>
  static constexpr name_recorder<Most> record() {
    builder<known_leaves<typename L::leaves>, graph_size{}, name_recorder<Most>> b(
        L::directory, first_of<Items...>::input, name_recorder<Most>{});
    L::run(b);
    return b.observer();
  }
  static constexpr int count = record<0>().count;
  static constexpr name_recorder<count> all = record<count>();
};

/// The names of `parameters` parameters, by the events.
[[gnu::cold]] row_list<parameter_name> names_of(view<name_event> events, int parameters);

/// The names of M's parameters, in the order of its graph.
template <class M>
row_list<parameter_name> const& parameter_names() {
  static row_list<parameter_name> const names = [] {
    if constexpr (M::valid) {
      constexpr auto const& recorded = described_names<typename M::items>::all;
      return names_of({recorded.events.items, recorded.count}, M::items::measured.size.parameters);
    }
    return row_list<parameter_name>{};
  }();
  return names;
}

}  // namespace pp::detail
#ifdef PIPE_DEFINED
#include <pipe/weights/names.inl>
#endif
