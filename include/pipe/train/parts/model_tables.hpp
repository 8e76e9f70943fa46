// SPDX-License-Identifier: BSL-1.0
//
// The parts of a model's graph that a program reads at run time. The graph itself is used during
// compilation only, so that no program contains it.
#pragma once

#include <pipe/base/list.hpp>
#include <pipe/graph/graph.hpp>

namespace pp::detail {

/// Run-time tables of model M.
template <class M>
struct model_tables {
  /// By parameter, in model order.
  static constexpr auto parameters = [](auto...) {
    list<parameter, M::graph.size.parameters> all;
    for (int i = 0; i < all.size(); ++i) all[i] = M::graph.parameters[i];
    return all;
  }();
  /// By top-level layer: index of its type in M::leaves.
  static constexpr auto layer_types = [](auto...) {
    list<short, M::graph.size.units> all;
    for (int i = 0; i < all.size(); ++i) all[i] = M::graph.units[i].leaf;
    return all;
  }();
};

}  // namespace pp::detail
