// SPDX-License-Identifier: BSL-1.0
//
// The partition of a model into stages that several ranks run: a stage with r ranks may take r
// times the time. The greedy of partition.hpp does not do here, as a stage with fewer ranks may
// have no room for a layer that the next one has; so the reachable ends of every stage are kept,
// which is still linear in stages times layers for each step of the bisection.
#pragma once

#include <pipe/schedule/scratch.hpp>

namespace pp::detail {

/// Where the first s stages can end, for every s, such that stage s takes at most bottleneck times
/// its ranks.
///
/// shape: ranks[stages] -> ends[stages + 1, layers + 1]
template <class Costs, class Ranks>
constexpr void reachable_ends(Costs const& costs, int layers, int stages, Ranks const& ranks,
                              long bottleneck, scratch<bool>& ends) {
  for (int i = 0; i <= layers; ++i) ends.item[i] = i == 0;
  for (int s = 0; s < stages; ++s) {
    bool const* const begins = ends.item + long(s) * (layers + 1);
    bool* const mine = ends.item + long(s + 1) * (layers + 1);
    long const room = bottleneck * ranks[s];
    // The stage's layers are [begin, end); `possible` of the places from `begin` on can begin it.
    long sum = 0;
    mine[0] = false;
    for (int end = 1, begin = 0, possible = 0; end <= layers; ++end) {
      possible += begins[end - 1];
      sum += costs[end - 1];
      for (; sum > room; ++begin) possible -= begins[begin], sum -= costs[begin];
      mine[end] = possible > 0;
    }
  }
}

/// Splits layers into `stages` consecutive non-empty ranges so that the largest time of a stage,
/// divided by its ranks, is as small as possible.
///
/// shape: costs[layers] >= 0, ranks[stages] >= 1 -> cuts[0 .. stages], ascending
/// law:   max over s of ceil(sum(costs[cuts[s], cuts[s + 1])) / ranks[s]) is minimal; subject to
///        that each cut, from the right, is as near as possible to its ranks' share of the total
/// needs: 1 <= stages <= layers; the sum of all costs times that of all ranks is a long
template <class Costs, class Ranks, class Cuts>
constexpr void partition_for_ranks(Costs const& costs, int layers, int stages, Ranks const& ranks,
                                   Cuts& cuts) {
  long total = 0, all_ranks = 0;
  for (int i = 0; i < layers; ++i) total += costs[i];
  for (int s = 0; s < stages; ++s) all_ranks += ranks[s];
  auto ends = scratch<bool>(long(stages + 1) * (layers + 1));
  auto const is_end = [&](int s, int i) -> bool { return ends.item[long(s) * (layers + 1) + i]; };
  long low = total / all_ranks, high = total;
  while (low < high) {
    long const middle = low + (high - low) / 2;
    reachable_ends(costs, layers, stages, ranks, middle, ends);
    if (is_end(stages, layers))
      high = middle;
    else
      low = middle + 1;
  }
  reachable_ends(costs, layers, stages, ranks, low, ends);
  cuts[0] = 0;
  cuts[stages] = layers;
  long before = total, ranks_before = all_ranks;
  for (int s = stages - 1; s > 0; --s) {
    // Of the places from which the stage fits, and which the stages before it reach.
    long sum = 0, nearest = -1;
    ranks_before -= ranks[s];
    long const share =
        total / all_ranks * ranks_before + total % all_ranks * ranks_before / all_ranks;
    int cut = 0;
    for (int i = cuts[s + 1] - 1; i > 0 && sum + costs[i] <= low * ranks[s]; --i) {
      sum += costs[i];
      long const away = before - sum > share ? before - sum - share : share - (before - sum);
      if (is_end(s, i) && (nearest < 0 || away < nearest)) cut = i, nearest = away;
    }
    for (int i = cut; i < cuts[s + 1]; ++i) before -= costs[i];
    cuts[s] = cut;
  }
}

}  // namespace pp::detail
