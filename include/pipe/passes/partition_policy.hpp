// SPDX-License-Identifier: BSL-1.0
//
// Partition policies: cuts by estimated cost, by count, by measured times, or given by the user.
#pragma once

#include <pipe/base/list.hpp>
#include <pipe/passes/layer_profile.hpp>
#include <pipe/passes/partition.hpp>
#include <pipe/passes/partition_replicas.hpp>
#include <pipe/schedule/problem.hpp>

namespace pp {

namespace detail {

/// A partition policy: `P::cut(costs, layers, stages, cuts)`; with a fifth argument, the numbers of
/// the stages' ranks, for StageReplicas.
///
/// shape: costs[layers] >= 0 -> cuts[0 .. stages], cuts[0] = 0, cuts[stages] = layers, ascending
template <class P>
concept partition_policy =
    requires(list<long, 1> const& costs, list<int, 2>& cuts) { P::cut(costs, 1, 1, cuts); };

/// A partition policy that minimises a time: `P::time_of_cut(layer, estimate)`. In a pipeline its
/// cuts depend on memory too: see partition_memory.hpp.
template <class P>
concept partition_by_time = requires(int layer, long estimate) { P::time_of_cut(layer, estimate); };

}  // namespace detail

/// Minimises the slowest stage by estimated cost (default); of all such cuts it takes those with
/// the least memory on the fullest rank, then those with the least bytes of transfers.
struct ByCost {
  static constexpr long time_of_cut(int, long estimate) { return estimate; }
  template <class Costs, class Cuts>
  static constexpr void cut(Costs const& costs, int layers, int stages, Cuts& cuts) {
    detail::partition_by_cost(costs, layers, stages, cuts);
  }
  template <class Costs, class Cuts, class Ranks>
  static constexpr void cut(Costs const& costs, int layers, int stages, Cuts& cuts,
                            Ranks const& ranks) {
    detail::partition_for_ranks(costs, layers, stages, ranks, cuts);
  }
};
/// Equal numbers of layers.
struct ByCount {
  template <class Costs, class Cuts>
  static constexpr void cut(Costs const&, int layers, int stages, Cuts& cuts) {
    detail::partition_by_count(layers, stages, cuts);
  }
};

/// As ByCost, with the times of profile P instead of estimated costs. The plan's shares and the
/// simulated schedule use these times as well.
///
/// needs: no time is negative, and at least one is positive
template <class P>
struct ByProfile {
  using profile = P;
  /// The profile as a list of costs: a layer's time of F, B and W.
  struct times {
    constexpr long operator[](int layer) const { return detail::time_in_profile<P>(layer).all(); }
  };
  static constexpr long time_of_cut(int layer, long) { return times{}[layer]; }
  template <class Costs, class Cuts>
  static constexpr void cut(Costs const&, int layers, int stages, Cuts& cuts) {
    detail::partition_by_cost(times{}, layers, stages, cuts);
  }
  template <class Costs, class Cuts, class Ranks>
  static constexpr void cut(Costs const&, int layers, int stages, Cuts& cuts, Ranks const& ranks) {
    detail::partition_for_ranks(times{}, layers, stages, ranks, cuts);
  }
  /// Times of a layer in nanoseconds. R has the share of F that the estimates say.
  static constexpr schedules::chunk_cost time_of(int layer, schedules::chunk_cost const& estimate) {
    return detail::cost_by_time(detail::time_in_profile<P>(layer, estimate), estimate);
  }
};
/// User-defined cuts: the first layer (from 0, as `explain` counts them) of the second, third ...
/// stage.
template <int... At>
struct Cut {
  /// needs: possible(layers, stages)
  template <class Costs, class Cuts>
  static constexpr void cut(Costs const&, int layers, int stages, Cuts& cuts) {
    constexpr int at[] = {0, At..., 0};
    for (int s = 0; s < stages; ++s) cuts[s] = at[s];
    cuts[stages] = layers;
  }
  /// Whether the cuts ascend, are one fewer than the stages, and give every stage a layer.
  static constexpr bool possible(int layers, int stages) {
    constexpr int at[] = {0, At..., 0};
    if (int(sizeof...(At)) != stages - 1) return false;
    for (int s = 1; s < stages; ++s)
      if (at[s] <= at[s - 1]) return false;
    return at[stages - 1] < layers;
  }
};

namespace detail {

/// Whether cuts give every stage a layer, and every layer a stage.
template <class Cuts>
constexpr bool are_cuts(Cuts const& cuts, int layers, int stages) {
  if (cuts[0] != 0 || cuts[stages] != layers) return false;
  for (int s = 0; s < stages; ++s)
    if (cuts[s] >= cuts[s + 1]) return false;
  return true;
}

}  // namespace detail

}  // namespace pp
