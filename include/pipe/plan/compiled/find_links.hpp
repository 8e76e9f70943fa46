// SPDX-License-Identifier: BSL-1.0
//
// The traffic between ranks, counted from the memory map: what runtime/transfers.hpp lists, without
// the places of it in memory.
#pragma once

#include <pipe/base/view.hpp>
#include <pipe/plan/plan.hpp>
#include <pipe/runtime/description.hpp>
#include <pipe/schedule/placement.hpp>
#include <pipe/schedule/stage_ranks.hpp>

namespace pp::detail {

/// The most links of a pipeline: both directions of each boundary, and of each tie; of the holders
/// of a stage, between neighbours, and the first and each of the others.
template <class Where>
constexpr int most_links(Where const& where, int stages, int ties) {
  int most = 2 * ties;
  for (int s = 0; s < stages; ++s) {
    if (s + 1 < stages) most += 2 * pairs_of(replicas(where, s), replicas(where, s + 1));
    if (replicas(where, s) > 1) most += 3 * replicas(where, s);
  }
  return most;
}

/// Lists the links that boundaries, ties and copies of weights use, in the order of the model.
///
/// P:       a compiled_pipeline or a planned_pipeline
/// slowest: most time that a rank computes for a micro-batch
/// law:   step_bytes_of() a link is what a transport moves over it in a step; with Lengths, of the
///        longest samples
/// shape: chunks[stages] -> links: at most most_links()
/// needs: memory in `links`
/// cost:  links squared
template <class P>
constexpr void find_links(chunk_description const* chunks, view<tie> ties, long slowest,
                          sink<link_plan>& links) {
  constexpr auto const& where = P::where;
  constexpr int ranks = P::ranks, stages = P::stages, micro_batches = P::micro_batches;
  constexpr long element_bytes = sizeof(typename P::element);
  auto const find = [&](int from, int to, int first, int every) -> link_plan& {
    int i = 0;
    while (i < links.count && (links.items[i].from != from || links.items[i].to != to)) ++i;
    if (i == links.count) links.push_back(link_plan{from, to, first, every});
    return links.items[i];
  };
  for (int s = 0; s + 1 < stages; ++s) {
    long const values = chunks[s].rings.boundary.stride,
               gradients = chunks[s + 1].rings.gradient.stride;
    int const pairs = pairs_of(replicas(where, s), replicas(where, s + 1));
    for (int mb = 0; mb < pairs; ++mb) {
      int const before = rank_of(where, ranks, s, mb), after = rank_of(where, ranks, s + 1, mb);
      if (before == after) continue;
      if (values > 0) find(before, after, mb, pairs).values += values;
      if (gradients > 0) find(after, before, mb, pairs).gradients += gradients;
    }
  }
  for (tie const& t : ties) {
    int const place = chunks[t.chunk].rank, owner = chunks[t.owner_chunk].rank;
    if (place == owner) continue;
    long const bytes = t.place.elements() * element_bytes;
    if (t.place.trained) find(place, owner, 0, 1).shared += bytes;
    find(owner, place, 0, 1).shared += bytes;
  }
  for (int s = 0; s < stages; ++s) {
    chunk_description const& c = chunks[s];
    if (!c.has_copies()) continue;
    auto const between = [&](int n, int next) -> link_plan& {
      return find(rank_of(where, ranks, s, n), rank_of(where, ranks, s, next), n, c.holders);
    };
    long hop = 0;  // from a micro-batch to the next
    for (parameter_place const& p : c.parameters)
      if (p.has_sum()) hop += p.elements() * element_bytes;
    for (int n = 0; n < c.holders; ++n) {
      link_plan& on = between(n, (n + 1) % c.holders);
      on.sums += hop * ((micro_batches - 1 - n + c.holders - 1) / c.holders);
      on.bandwidth += double(hop);
      if (n == 0) continue;
      if ((micro_batches - 1) % c.holders == n) between(n, 0).sums += c.summed_bytes();
      if (s + 1 == stages)
        between(n, 0).sums +=
            P::step::losses * losses_of_holder(micro_batches, c.holders) * long(sizeof(double));
      between(0, n).shared += c.transposed - c.values;
    }
  }
  for (int i = 0; i < links.count; ++i) {
    link_plan& on = links.items[i];
    on.bandwidth = (on.bandwidth + double(on.bytes())) / double(slowest < 1 ? 1 : slowest);
  }
}

/// The links of a pipeline, in memory of a fixed size.
template <int Most>
struct link_list {
  link_plan items[Most > 0 ? Most : 1]{};
  int count = 0;
};

}  // namespace pp::detail
