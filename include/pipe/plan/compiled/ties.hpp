// SPDX-License-Identifier: BSL-1.0
//
// Ties: parameters shared by several layers. Each stage that reads a shared parameter has a copy.
#pragma once

#include <pipe/base/list.hpp>
#include <pipe/graph/graph.hpp>
#include <pipe/runtime/description.hpp>

namespace pp::detail {

/// Number of later places of shared parameters.
constexpr int count_ties(graph_view const& g) {
  int n = 0;
  for (parameter const& p : g.parameters) n += p.tied_to >= 0;
  return n;
}

/// Lists every later place of each shared parameter, in model order.
///
/// shape: places[stages]: by stage, its parameters' places in model order -> ties[count_ties(g)]
constexpr void find_ties(graph_view const& g, parameter_place const* const* places,
                         short const* stage_of_unit, tie* ties) {
  auto const place_of = [&](int index, int stage) -> parameter_place const& {
    return places[stage][index - places[stage]->index];
  };
  for (int i = 0; i < g.parameters.count; ++i) {
    int const owner = g.parameters[i].tied_to;
    if (owner < 0) continue;
    int const chunk = stage_of_unit[g.parameters[i].unit],
              owner_chunk = stage_of_unit[g.parameters[owner].unit];
    *ties++ = tie{chunk, owner_chunk, place_of(i, chunk), place_of(owner, owner_chunk)};
  }
}

}  // namespace pp::detail
