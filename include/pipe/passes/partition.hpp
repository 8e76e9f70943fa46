// SPDX-License-Identifier: BSL-1.0
//
// The partition of a model into stages. The slowest stage sets the pace of a pipeline, so the cut
// that makes it as fast as possible is the best one; it is found exactly, in time linear in the
// layers, by bisection on the slowest stage's time.
#pragma once

namespace pp {

/// True if the costs can be cut into at most `stages` ranges, none above `bottleneck`.
template <class Costs>
constexpr bool fits(Costs const& costs, int layers, int stages, long bottleneck) {
  long sum = 0;
  for (int i = 0; i < layers; ++i) {
    if (costs[i] > bottleneck) return false;
    sum += costs[i];
    if (sum > bottleneck) {
      sum = costs[i];
      if (--stages == 0) return false;
    }
  }
  return true;
}

/// The least possible time of the slowest stage.
template <class Costs>
constexpr long least_bottleneck(Costs const& costs, int layers, int stages) {
  long low = 0, most = 0;
  for (int i = 0; i < layers; ++i) {
    low += costs[i];
    most = costs[i] > most ? costs[i] : most;
  }
  low = low / stages > most
            ? low / stages
            : most;  // an even share, or the largest layer; no more than one layer above that
  long high = low + most;
  while (low < high) {
    long const middle = low + (high - low) / 2;
    if (fits(costs, layers, stages, middle))
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

/// Splits layers into `stages` consecutive non-empty ranges whose slowest range is as fast as
/// possible.
///
/// shape:  costs[layers] >= 0 -> cuts[0 .. stages], cuts[0] = 0, cuts[stages] = layers, ascending
/// law:    max over s of sum(costs[cuts[s], cuts[s + 1])) is minimal; under it each cut lies as
///         near as it can to an even share of the total
/// needs:  1 <= stages <= layers; the sum of all costs is a long
/// source: Narayanan et al., PipeDream, 2019, section 3.1 (the same minimum, by dynamic
///         programming)
template <class Costs, class Cuts>
constexpr void partition_by_cost(Costs const& costs, int layers, int stages, Cuts& cuts) {
  long const bottleneck = least_bottleneck(costs, layers, stages);
  // latest[s]: the last place where cut s may lie when the stages before it are filled greedily;
  // earliest[s]: the first place from which the stages after it still fit. Between the two every
  // cut keeps the bottleneck.
  cuts[0] = 0;
  cuts[stages] = layers;
  int end = layers;  // first pass, from the right: earliest cuts
  for (int s = stages - 1; s > 0; --s) {
    long sum = 0;
    int i = end;
    while (i > s && sum + costs[i - 1] <= bottleneck) sum += costs[--i];
    cuts[s] = end = i < end ? i : end - 1;
  }
  long total = 0;
  for (int i = 0; i < layers; ++i) total += costs[i];
  int at = 0;  // second pass, from the left: move each cut right towards its even share while its
               // stage still fits
  long before = 0;
  for (int s = 1; s < stages; ++s) {
    long const even = total / stages * s +
                      total % stages * s / stages;  // no product of the total: it may be large
    long sum = 0;
    int cut = at;
    auto const may_grow = [&] {
      return cut < layers - (stages - s) && sum + costs[cut] <= bottleneck;
    };
    while (cut < cuts[s] || cut == at) sum += costs[cut++];
    while (may_grow() && before + sum + (costs[cut] + 1) / 2 <= even) sum += costs[cut++];
    before += sum;
    cuts[s] = at = cut;
  }
}

/// Equal numbers of layers, the first stages one more where they do not divide.
template <class Cuts>
constexpr void partition_by_count(int layers, int stages, Cuts& cuts) {
  for (int s = 0; s <= stages; ++s)
    cuts[s] = s * (layers / stages) + (s < layers % stages ? s : layers % stages);
}

}  // namespace pp
