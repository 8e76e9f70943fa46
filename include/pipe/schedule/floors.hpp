// SPDX-License-Identifier: BSL-1.0
//
// What no schedule can beat, and what the plain ones reach exactly. A floor makes a simulated time a certificate: the
// distance between the two is all that any other schedule of the same family could still win.
#pragma once

#include <pipe/schedule/problem.hpp>

namespace pp {

/// The least makespan of any schedule that trains with one chunk per rank and a flush at the end, and its stage-local twin.
///
/// Two chains through every rank s, of which the slowest binds: (1) nothing reaches s before one F of every rank above
/// it, then s has all its own work to do; (2) the same way down, all F and B of s, then the last B's gradient climbs back
/// to some rank, which ends with its W.
///
/// law:    equal times: makespan >= (P-1)(TF+Tc) + M T  and  >= (P-1)(TF+TB+2Tc) + M(TF+TB) + TW
/// law:    equal times: stage-local span - M T >= max(0, (P-1)(TF+TB+2Tc) - (M-1)TW)
/// source: Qi et al., Zero Bubble Pipeline Parallelism, 2024, section 2.3, for equal times
struct flush_floor {
  long makespan = 0;
  long stage_local_span = 0;
};

template <pipeline_problem Problem>
constexpr flush_floor floor_of(Problem const& problem) {
  constexpr auto raise = [](long& floor, long to) {
    if (to > floor) floor = to;
  };
  auto floor = flush_floor{};
  long down = 0;      // F and hops from the first rank to s
  long up = 0;        // hops and B from s, not counting its own, to the first rank
  long up_and_w = 0;  // the longest way from the end of s's last B to the end of a W on s or above
  for (int s = 0; s < problem.ranks; ++s) {
    chunk_cost const& cost = problem.cost(s);
    long const both_ways = problem.micro_batches * (cost.forward + cost.backward_input);
    long const own_work = both_ways + problem.micro_batches * cost.backward_weight;
    raise(up_and_w, cost.backward_weight);
    raise(floor.makespan, down + own_work);
    raise(floor.makespan, down + both_ways + up_and_w);
    raise(floor.stage_local_span, own_work);
    raise(floor.stage_local_span, down + both_ways + up + problem.cost(0).backward_weight);
    if (s + 1 == problem.ranks) break;
    down += cost.forward + problem.hop_time(s, s + 1, s);
    up += cost.backward_input + problem.hop_time(s + 1, s, s);
    up_and_w += cost.backward_input + problem.hop_time(s + 1, s, s);
  }
  return floor;
}

/// The bubble of GPipe and of 1F1B at equal times without hops, of the makespan: (P-1)/(M+P-1).
constexpr double bubble_of_one_flush(int ranks, int micro_batches) {
  return static_cast<double>(ranks - 1) / (micro_batches + ranks - 1);
}

/// The peak of 1F1B on a rank, in micro-batches: min(M, P-rank).
constexpr int peak_of_1f1b(int ranks, int micro_batches, int rank) {
  return micro_batches < ranks - rank ? micro_batches : ranks - rank;
}

}  // namespace pp
