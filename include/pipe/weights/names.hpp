// SPDX-License-Identifier: BSL-1.0
//
// The names of a model's parameters in weight files: the path to the layer, as PyTorch names the
// modules of a Sequential, and the parameter's own name in it: `2.3.0.1.in_proj_weight`.
// docs/reference/files.md has the table.
#pragma once

#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <pipe/nn/model.hpp>

namespace pp::detail {

/// Name and layout of a parameter in weight files.
struct parameter_name {
  std::string name;
  bool transposed = false;  ///< the file holds [columns, rows]
};

/// Observer of a layer description that records the path to each parameter. A layer's name replaces
/// its number in the path.
struct name_observer {
  std::vector<std::string> way;
  std::vector<parameter_name> found;  // by parameter; later places of a parameter have no name

  template <class = void>
  void part(int i) {
    way.push_back(std::to_string(i));
  }
  void end_part() { way.pop_back(); }
  template <class = void>
  void name(std::string_view given) {
    way.back() = std::string(given);
  }
  template <class = void>
  void parameter(int index, file_name const& file) {
    // Indices ascend; those in between are later places of shared parameters, without a name.
    found.resize(std::size_t(index));
    std::string all;
    for (std::string const& part : way) all += part + ".";
    found.push_back({all + file.name, file.transposed});
  }
};

/// Describes the model once more, to a builder that has the observer.
template <class... Items>
std::vector<parameter_name> names_of(std::type_identity<lowering<Items...>>) {
  using l = lowering<Items...>;
  builder<known_leaves<typename l::leaves>, graph_size{}, name_observer> b(
      l::directory, first_of<Items...>::input);
  l::run(b);
  std::vector<parameter_name> names = b.observer().found;
  // Later places at the end of the model have empty names, too.
  names.resize(std::size_t(b.sizes().parameters));
  return names;
}

/// The names of M's parameters, in the order of its graph.
template <class M>
std::vector<parameter_name> const& parameter_names() {
  static std::vector<parameter_name> const names = [] {
    if constexpr (M::valid) return names_of(std::type_identity<typename M::items>{});
    return std::vector<parameter_name>{};
  }();
  return names;
}

}  // namespace pp::detail
