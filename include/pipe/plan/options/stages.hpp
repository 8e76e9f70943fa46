// SPDX-License-Identifier: BSL-1.0
//
// The number of stages, and of the ranks that run each.
#pragma once

#include <type_traits>

#include <pipe/plan/options/family.hpp>
#include <pipe/schedule/policy.hpp>
#include <pipe/schedule/shared_weights.hpp>
#include <pipe/schedule/stage_ranks.hpp>

namespace pp {

namespace option_family {
struct stages;
}

/// The model is cut into N stages (default 1), at most as many as it has top-level layers. Ranks
/// are stages divided by the schedule's chunks per rank.
template <int N>
struct Stages {
  using family = option_family::stages;
  static constexpr int value = N;
};

/// As many stages as there are numbers, each on that many ranks: for stages that one rank cannot
/// keep up with. Rank n of a stage runs its micro-batches n, n + replicas, ...; the bits are those
/// of one rank, which owns the stage's weights, gradients and optimizer state.
///
/// needs: a schedule of one stage per rank (OneFOneB, EagerOneFOneB, GPipe); ranks that are threads
///        of one process
template <int First, int... Others>
struct StageReplicas {
  using family = option_family::stages;
  static constexpr int value = 1 + sizeof...(Others);
  static constexpr schedules::stage_ranks<value> where{{First, Others...}};
};

namespace detail {

/// Whether an option says how many ranks each stage has.
template <class Stages>
concept has_ranks_of_stages = requires { Stages::where; };

/// The placement of a pipeline: that of StageReplicas or of its schedule, with one copy of the
/// weights.
template <class Stages, class Schedule>
constexpr auto placement_of() {
  if constexpr (has_ranks_of_stages<Stages>)
    return Stages::where;
  else if constexpr (replicas(Schedule::where) > 1)
    return shared_weights{Schedule::where};
  else
    return placement(Schedule::where);
}
/// The option by which several ranks hold a stage: StageReplicas, a schedule in two directions, or
/// none: void.
template <class Stages, class Schedule>
using replicated_by =
    std::conditional_t<has_ranks_of_stages<Stages>, Stages,
                       std::conditional_t<(replicas(Schedule::where) > 1), Schedule, void>>;
/// The ranks of a pipeline.
template <class Stages, class Schedule>
constexpr int ranks_of() {
  if constexpr (has_ranks_of_stages<Stages>)
    return Stages::where.first[Stages::value];
  else
    return Stages::value * replicas(Schedule::where) /
           (Schedule::chunks_per_rank > 0 ? Schedule::chunks_per_rank : 1);
}

/// The partition policy of a pipeline: P, which is told the numbers of ranks if it takes them.
template <class P, class Stages>
struct cut_for_ranks {
  template <class Costs, class Cuts>
  static constexpr void cut(Costs const& costs, int layers, int stages, Cuts& cuts) {
    int ranks[Stages::value]{};
    for (int s = 0; s < Stages::value; ++s) ranks[s] = replicas(Stages::where, s);
    if constexpr (requires { P::cut(costs, layers, stages, cuts, ranks); })
      P::cut(costs, layers, stages, cuts, ranks);
    else
      P::cut(costs, layers, stages, cuts);
  }
};
template <class P, class Stages>
using partition_of = std::conditional_t<has_ranks_of_stages<Stages>, cut_for_ranks<P, Stages>, P>;

/// Whether every stage has a rank.
template <class Stages>
constexpr bool all_have_ranks() {
  if constexpr (has_ranks_of_stages<Stages>)
    for (int s = 0; s < Stages::value; ++s)
      if (replicas(Stages::where, s) < 1) return false;
  return true;
}

}  // namespace detail

/// The family of stage counts: from 1 to the number of top-level layers of the model.
struct option_family::stages : detail::any_family {
  using fallback = Stages<1>;

  template <class Options>
  static constexpr auto diagnose() {
    using option = typename Options::template get<stages>;
    if constexpr (option::value < 1 || !detail::all_have_ranks<option>())
      return detail::diagnosis_of<wrong::number_must_be_positive, option>();
    else
      return std::type_identity<detail::nothing_wrong>{};
  }
  template <class M, class Options>
  static constexpr auto diagnose_for() {
    using option = typename Options::template get<stages>;
    constexpr int layers = M::graph.size.units;
    if constexpr (option::value > layers)
      return detail::diagnosis_of<wrong::more_stages_than_layers, option, wrong::Layers<layers>>();
    else
      return std::type_identity<detail::nothing_wrong>{};
  }
};

}  // namespace pp
