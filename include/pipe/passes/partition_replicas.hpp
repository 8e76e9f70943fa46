// SPDX-License-Identifier: BSL-1.0
//
// The partition of a model into stages that several ranks run: a stage with r ranks may take r
// times the time. The greedy algorithm of partition.hpp is not exact here: a stage may have no room
// for a layer that the next stage, which has more ranks, can take. So the reachable ends of every
// stage are kept, in a time of stages times layers for each step of the bisection.
#pragma once

#include <pipe/schedule/scratch.hpp>

namespace pp::detail {

/// The places where the first s stages can end, for every s, if each stage takes at most
/// `bottleneck` times its number of ranks.
///
/// shape: ranks[stages] -> ends[stages + 1, layers + 1]
/// cost:  stages * layers
template <class Costs, class Ranks>
constexpr void reachable_ends(Costs const& costs, int layers, int stages, Ranks const& ranks,
                              long bottleneck, scratch<bool>& ends) {
  for (int i = 0; i <= layers; ++i) ends.item[i] = i == 0;
  for (int s = 0; s < stages; ++s) {
    bool const* const begins = ends.item + long(s) * (layers + 1);
    bool* const mine = ends.item + long(s + 1) * (layers + 1);
    long const room = bottleneck * ranks[s];
    // The stage's layers are [begin, end); it can begin at `possible` of the places in this range.
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
///        that each cut, from the right, is as near as possible to the share of the total that the
///        ranks before it have
/// needs: 1 <= stages <= layers; the sum of all costs times the sum of all ranks is a long
/// cost:  60 stages * layers
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
    // The nearest of the places from which the stage fits and at which the stages before it can
    // end.
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

/// The number of ranks that a stage of this time needs so that each rank takes at most
/// `bottleneck`; if no number is enough, a number above all others.
constexpr long ranks_for(long time, long bottleneck) {
  constexpr long too_many = 1L << 40;
  return time == 0 ? 1 : bottleneck == 0 ? too_many : (time + bottleneck - 1) / bottleneck;
}
/// The least number of ranks with which the first i layers can be s stages, none of which takes
/// longer than `bottleneck` per rank, for every s and i.
///
/// shape: least[stages + 1, layers + 1]
template <class Costs>
constexpr void least_ranks(Costs const& costs, int layers, int stages, long bottleneck,
                           scratch<long>& least) {
  constexpr long impossible = 1L << 50;
  for (int i = 0; i <= layers; ++i) least.item[i] = i == 0 ? 0 : impossible;
  for (int s = 1; s <= stages; ++s) {
    long const* const before = least.item + long(s - 1) * (layers + 1);
    long* const mine = least.item + long(s) * (layers + 1);
    mine[0] = impossible;
    for (int end = 1; end <= layers; ++end) {
      long sum = 0, most = impossible;
      for (int begin = end - 1; begin >= s - 1; --begin) {
        sum += costs[begin];
        long const all = before[begin] + ranks_for(sum, bottleneck);
        most = all < most ? all : most;
      }
      mine[end] = most;
    }
  }
}

/// Distributes `ranks` over stages, whose cuts are free, so that the largest time of a stage,
/// divided by its ranks, is as small as possible.
///
/// shape:  costs[layers] >= 0 -> counts[stages] >= 1, whose sum is `ranks`
/// law:    partition_for_ranks with these counts has the least bottleneck of all counts
/// needs:  1 <= stages <= layers, stages <= ranks; the sum of all costs is a long
/// cost:   60 stages layers^2: a constant evaluation has room for some 40 layers in 4 stages
/// source: Narayanan et al., PipeDream, 2019, section 3.1, whose planner this is without the costs
///         of communication
template <class Costs, class Counts>
constexpr void choose_ranks(Costs const& costs, int layers, int stages, int ranks, Counts& counts) {
  auto least = scratch<long>(long(stages + 1) * (layers + 1));
  auto const at = [&](int s, int i) { return least.item[long(s) * (layers + 1) + i]; };
  long low = 0, high = 0;
  for (int i = 0; i < layers; ++i) high += costs[i];
  low = high / ranks;
  while (low < high) {
    long const middle = low + (high - low) / 2;
    least_ranks(costs, layers, stages, middle, least);
    if (at(stages, layers) <= ranks)
      high = middle;
    else
      low = middle + 1;
  }
  least_ranks(costs, layers, stages, low, least);
  int left = ranks;
  for (int s = stages, end = layers; s > 0; --s) {
    long sum = 0;
    int begin = end;
    do sum += costs[--begin];
    while (at(s - 1, begin) + ranks_for(sum, low) != at(s, end));
    counts[s - 1] = int(ranks_for(sum, low));
    left -= counts[s - 1];
    end = begin;
  }
  counts[0] += left;  // ranks beyond those that the bottleneck needs
}

}  // namespace pp::detail
