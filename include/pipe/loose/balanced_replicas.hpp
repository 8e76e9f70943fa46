// SPDX-License-Identifier: BSL-1.0
//
// The numbers of ranks for the stages of a model, chosen by the compiler.
#pragma once

#include <utility>

#include <pipe/base/list.hpp>
#include <pipe/passes/partition_replicas.hpp>
#include <pipe/plan/options/partition.hpp>
#include <pipe/plan/options/stages.hpp>

namespace pp {

namespace detail {

/// The numbers of ranks of BalancedReplicas. Too few ranks or layers: the last stages have none, or
/// each has one, and no stage at all: one without a rank. It is reported as StageReplicas with
/// these numbers would be.
template <class M, int Count, int Ranks>
constexpr auto balanced_counts() {
  constexpr int layers = M::graph.size.units;
  list<int, (Count > 0 ? Count : 1)> counts;
  if constexpr (Count > layers || Ranks < Count || Count < 1)
    for (int s = 0; s < Count; ++s) counts[s] = s < Ranks;
  else
    choose_ranks(training_times<M>(), layers, Count, Ranks, counts);
  return counts;
}

/// StageReplicas with the numbers of BalancedReplicas.
template <class M, int Count, int Ranks,
          class = std::make_integer_sequence<int, (Count > 0 ? Count : 1)>>
struct balanced_replicas;
template <class M, int Count, int Ranks, int... S>
struct balanced_replicas<M, Count, Ranks, std::integer_sequence<int, S...>> {
  static constexpr auto counts = balanced_counts<M, Count, Ranks>();
  using type = StageReplicas<counts[S]...>;
};

}  // namespace detail

/// `Stages` stages of model M on `Ranks` ranks: StageReplicas with the numbers for which the
/// slowest stage per rank is as fast as possible, by estimated cost.
///
/// needs: as many ranks as stages, and as many layers; to be chosen in a constant: see choose_ranks
template <class M, int Stages, int Ranks>
using BalancedReplicas = typename detail::balanced_replicas<M, Stages, Ranks>::type;

}  // namespace pp
