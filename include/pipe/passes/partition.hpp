// SPDX-License-Identifier: BSL-1.0
//
// The partition of a model into stages. The slowest stage sets the pace of a pipeline, so the best
// partition minimises the time of the slowest stage. This minimum is found exactly, by bisection on
// the time; each step is linear in the number of layers.
#pragma once

namespace pp::detail {

/// Whether the costs can be cut into at most `stages` ranges, each of cost at most `bottleneck`.
template <class Costs>
constexpr bool fits(Costs const& costs, int layers, int stages, long bottleneck) {
  long sum = 0;
  for (int i = 0; i < layers; ++i) {
    // No range can hold this layer.
    if (costs[i] > bottleneck) return false;
    sum += costs[i];
    if (sum > bottleneck) {
      sum = costs[i];
      if (--stages == 0) return false;
    }
  }
  return true;
}

/// The minimum cost of the slowest stage.
template <class Costs>
constexpr long least_bottleneck(Costs const& costs, int layers, int stages) {
  long low = 0, most = 0;
  for (int i = 0; i < layers; ++i) {
    low += costs[i];
    most = costs[i] > most ? costs[i] : most;
  }
  // The minimum is at least an even share and at least the largest layer. It exceeds both by at
  // most the cost of the largest layer.
  low = low / stages > most ? low / stages : most;
  long high = low + most;
  while (low < high) {
    // Not (low + high) / 2: the sum may overflow.
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
/// law:    max over s of sum(costs[cuts[s], cuts[s + 1])) is minimal; subject to that each cut,
///         from the left, is as near as possible to an even share of the total
/// needs:  1 <= stages <= layers; the sum of all costs is a long
/// source: Narayanan et al., PipeDream, 2019, section 3.1 (the same minimum, by dynamic
///         programming)
template <class Costs, class Cuts>
constexpr void partition_by_cost(Costs const& costs, int layers, int stages, Cuts& cuts) {
  long const bottleneck = least_bottleneck(costs, layers, stages);
  // A cut keeps the bottleneck if it lies between its earliest place, from which the stages after
  // it fit, and its latest place, at which the stages before it, filled greedily, end. The first
  // pass sets cuts[s] to the earliest place.
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
  // Second pass, from the left: moves each cut right towards its even share while its stage fits.
  int at = 0;
  long before = 0;
  for (int s = 1; s < stages; ++s) {
    // Quotient and remainder apart: the product of the total and s may overflow.
    long const even = total / stages * s + total % stages * s / stages;
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

/// Splits layers into equal numbers; if these do not divide evenly, the first stages have one layer
/// more.
template <class Cuts>
constexpr void partition_by_count(int layers, int stages, Cuts& cuts) {
  for (int s = 0; s <= stages; ++s)
    cuts[s] = s * (layers / stages) + (s < layers % stages ? s : layers % stages);
}

}  // namespace pp::detail
