// SPDX-License-Identifier: BSL-1.0
//
// The placement of stages that several ranks run: replicas of a stage with which a single rank
// cannot keep up. Micro-batches go round robin over a stage's ranks, forward and backward of a
// micro-batch on the same rank. The ranks read one copy of the weights and add to one gradient, in
// micro-batch order, so the bits are those of a single rank.
#pragma once

#include <pipe/schedule/placement.hpp>

namespace pp {

namespace schedules {

/// Stage s on ranks [first[s], first[s + 1]), which take micro-batches in turn.
///
/// law:    rank_of(w, P, s, mb) == first[s] + mb mod replicas(w, s)
/// law:    an action that makes a weight gradient follows the one of the previous micro-batch, on
///         any rank
/// source: Narayanan et al., PipeDream, 2019, section 3.2: 1F1B-RR
template <int Stages>
struct stage_ranks {
  int first[Stages + 1]{};

  constexpr stage_ranks() = default;
  /// shape: counts[Stages]: the ranks of each stage, at least 1
  constexpr explicit stage_ranks(int const (&counts)[Stages]) {
    for (int s = 0; s < Stages; ++s) first[s + 1] = first[s] + counts[s];
  }

  // The functions of a placement: see placement.hpp. A rank holds one stage, so holders are ranks.

  /// The number of ranks of a stage.
  friend constexpr int replicas(stage_ranks const& where, int stage) {
    return where.first[stage + 1] - where.first[stage];
  }
  /// The rank that runs a stage for a micro-batch.
  friend constexpr int rank_of(stage_ranks const& where, int, int stage, int micro_batch = 0) {
    return where.first[stage] + micro_batch % replicas(where, stage);
  }
  /// Holders and ranks have the same numbers.
  friend constexpr int holders(stage_ranks const& where, int) { return where.first[Stages]; }
  friend constexpr int holder_of(stage_ranks const& where, int stage, int micro_batch) {
    return rank_of(where, 0, stage, micro_batch);
  }
  /// A stage is a chunk.
  friend constexpr int chunks_for(stage_ranks const&, int, int) { return Stages; }
  /// Whether a problem has these numbers of ranks and stages.
  friend constexpr bool fits(stage_ranks const& where, int ranks, int chunks) {
    bool all = ranks == where.first[Stages] && chunks == Stages;
    for (int s = 0; s < Stages; ++s) all = all && replicas(where, s) > 0;
    return all;
  }
  friend constexpr char const* what_fits(stage_ranks const&) {
    return "a chunk for each stage, and the ranks of all stages";
  }
};

}  // namespace schedules

namespace detail {

template <int Stages>
inline constexpr bool adds_in_order<stage_ranks<Stages>> = true;

}  // namespace detail

}  // namespace pp
