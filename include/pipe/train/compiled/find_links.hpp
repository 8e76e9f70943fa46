// SPDX-License-Identifier: BSL-1.0
//
// The traffic between ranks, counted from the memory map: what runtime/transfers.hpp lists, without
// the places of it in memory.
#pragma once

#include <pipe/base/view.hpp>
#include <pipe/runtime/description.hpp>
#include <pipe/schedule/stage_ranks.hpp>
#include <pipe/train/plan.hpp>

namespace pp::detail {

/// After how many micro-batches the same two ranks pass on a value from stage s again.
template <class Where>
constexpr int turns_of(Where const& where, int s) {
  int const before = replicas(where, s), after = replicas(where, s + 1);
  int turns = before;
  while (turns % after != 0) turns += before;
  return turns;
}
/// The most links of a pipeline: both directions of each boundary, and of each tie.
template <class Where>
constexpr int most_links(Where const& where, int stages, int ties) {
  int most = 2 * ties;
  for (int s = 0; s + 1 < stages; ++s) most += 2 * turns_of(where, s);
  return most;
}

/// Lists the links that boundaries and ties use, in the order of the model. slowest: most time that
/// a rank computes for a micro-batch
///
/// shape: chunks[stages] -> links: at most most_links()
/// needs: memory in `links`
/// cost:  links squared
template <class Where>
constexpr void find_links(Where const& where, int ranks, chunk_description const* chunks,
                          int stages, view<tie> ties, long element_bytes, long slowest,
                          sink<link_plan>& links) {
  auto const find = [&](int from, int to, int first, int every) -> link_plan& {
    int i = 0;
    while (i < links.count && (links.items[i].from != from || links.items[i].to != to)) ++i;
    if (i == links.count) links.push_back(link_plan{from, to, first, every});
    return links.items[i];
  };
  for (int s = 0; s + 1 < stages; ++s) {
    long const values = chunks[s].boundary.stride, gradients = chunks[s + 1].gradient.stride;
    for (int mb = 0, turns = turns_of(where, s); mb < turns; ++mb) {
      int const before = rank_of(where, ranks, s, mb), after = rank_of(where, ranks, s + 1, mb);
      if (before == after) continue;
      if (values > 0) find(before, after, mb, turns).values += values;
      if (gradients > 0) find(after, before, mb, turns).gradients += gradients;
    }
  }
  for (tie const& t : ties) {
    int const place = chunks[t.chunk].rank, owner = chunks[t.owner_chunk].rank;
    if (place == owner) continue;
    long const bytes = t.place.elements() * element_bytes;
    if (t.place.trained) find(place, owner, 0, 1).shared += bytes;
    find(owner, place, 0, 1).shared += bytes;
  }
  for (int i = 0; i < links.count; ++i)
    links.items[i].bandwidth = double(links.items[i].bytes()) / double(slowest < 1 ? 1 : slowest);
}

/// The links of a pipeline, in memory of a fixed size.
template <int Most>
struct link_list {
  link_plan items[Most > 0 ? Most : 1]{};
  int count = 0;
};

}  // namespace pp::detail
