// SPDX-License-Identifier: BSL-1.0
//
// Of a model's graph what a program reads when it runs. The graph itself is for the compiler: no
// program contains it.
#pragma once

#include <pipe/base/list.hpp>
#include <pipe/graph/graph.hpp>

namespace pp::detail {

template <class M>
struct model_tables {
  static constexpr auto parameters = [](auto...) {
    list<parameter, M::graph.size.parameters> all;
    for (int i = 0; i < all.size(); ++i) all[i] = M::graph.parameters[i];
    return all;
  }();
  /// By top-level layer: its type, of M::leaves.
  static constexpr auto layer_types = [](auto...) {
    list<short, M::graph.size.units> all;
    for (int i = 0; i < all.size(); ++i) all[i] = M::graph.units[i].leaf;
    return all;
  }();
};

}  // namespace pp::detail
