// SPDX-License-Identifier: BSL-1.0
//
// The traffic between ranks, counted from the memory map: what runtime/transfers.hpp lists, without
// the places of it in memory.
#pragma once

#include <pipe/base/view.hpp>
#include <pipe/runtime/description.hpp>
#include <pipe/train/plan.hpp>

namespace pp::detail {

/// The most links of a pipeline: both directions of each boundary, and of each tie.
constexpr int most_links(int stages, int ties) { return 2 * (stages - 1) + 2 * ties; }

/// Lists the links that boundaries and ties use, in the order of the model.
///
/// shape: chunks[stages] -> links: at most most_links()
/// needs: memory in `links`. slowest: most time that a rank computes for a micro-batch
/// cost:  links squared
constexpr void find_links(chunk_description const* chunks, int stages, view<tie> ties,
                          long element_bytes, long slowest, sink<link_plan>& links) {
  auto const add = [&](int from, int to, long link_plan::* what, long bytes) {
    if (from == to || bytes == 0) return;
    int i = 0;
    while (i < links.count && (links.items[i].from != from || links.items[i].to != to)) ++i;
    if (i == links.count) links.push_back(link_plan{from, to});
    links.items[i].*what += bytes;
  };
  for (int s = 0; s + 1 < stages; ++s) {
    chunk_description const &before = chunks[s], &after = chunks[s + 1];
    add(before.rank, after.rank, &link_plan::values, before.boundary.stride);
    add(after.rank, before.rank, &link_plan::gradients, after.gradient.stride);
  }
  for (tie const& t : ties) {
    int const place = chunks[t.chunk].rank, owner = chunks[t.owner_chunk].rank;
    long const bytes = t.place.elements() * element_bytes;
    if (t.place.trained) add(place, owner, &link_plan::shared, bytes);
    add(owner, place, &link_plan::shared, bytes);
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
