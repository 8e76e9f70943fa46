// SPDX-License-Identifier: BSL-1.0
//
// Parameters that several layers share: each has a copy in every stage that reads it.
#pragma once

#include <pipe/base/list.hpp>
#include <pipe/graph/graph.hpp>
#include <pipe/runtime/description.hpp>

namespace pp::detail {

constexpr int count_ties(graph_view const& g) {
  int n = 0;
  for (parameter const& p : g.parameters) n += p.tied_to >= 0;
  return n;
}

/// Every place of a shared parameter but its owner's, in the order of the model.
///
/// shape: places[stages], of each stage the places of its parameters in the order of the model ->
///        ties[count_ties(g)]
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
