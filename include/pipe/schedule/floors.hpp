// SPDX-License-Identifier: BSL-1.0
//
// Lower bounds on the time of a schedule, which the classical families reach exactly. A floor makes
// a simulated time a certificate: the gap between the two is the most that any other schedule of
// the placement could still gain.
#pragma once

#include <climits>

#include <pipe/schedule/placement.hpp>
#include <pipe/schedule/problem.hpp>
#include <pipe/schedule/required.hpp>
#include <pipe/schedule/scratch.hpp>

namespace pp {

namespace schedules {

/// Lower bounds on the makespan (from the first F to the last W) and on the stage-local span of any
/// schedule with a flush on a placement.
///
/// Each is the longest of two chains through every rank: (1) the rank starts no earlier than one F
/// of every chunk above the rank's first chunk takes, and then does all its own work; (2) the same
/// way down, then all F and B of the rank, then the gradient of the rank's last B travels up to
/// some chunk, which ends with a W. Where two replicas reach a rank, the shorter way counts.
///
/// law:    one chunk, equal times: makespan >= (P-1)(TF+Tc) + M T and >= (P-1)(TF+TB+2Tc) +
///         M(TF+TB) + TW
/// law:    one chunk, equal times: stage-local span - M T >= max(0, (P-1)(TF+TB+2Tc) - (M-1)TW)
/// source: Qi et al., Zero Bubble Pipeline Parallelism, 2024, section 2.3, for one chunk and equal
///         times
struct flush_floor {
  long makespan = 0;
  long stage_local_span = 0;
};

/// The floor of a problem on a placement.
///
/// throws: pp::error if the problem does not fit the placement
template <pipeline_problem Problem>
constexpr flush_floor floor_of(Problem const& problem, placement where = placement::straight) {
  detail::require_placement(problem, where);
  int const p = problem.ranks, m = problem.micro_batches, copies = replicas(where);
  // Work of a rank for all micro-batches: F, B and W; F and B only.
  auto work = detail::scratch<long>(p), both_ways = detail::scratch<long>(p);
  auto down = detail::scratch<long>(
      p, LONG_MAX);  // from the first chunk of all to the rank's first chunk: F and hops
  // From the rank back up to the first chunk: hops and B, without the rank's own B.
  auto up = detail::scratch<long>(p, LONG_MAX);
  auto up_and_w = detail::scratch<long>(
      p, LONG_MAX);  // the longest way from the end of the rank's last B to the end of a W
  constexpr auto lower = [](long& least, long to) { least = to < least ? to : least; };
  for (int copy = 0; copy < copies && copy < m; ++copy) {
    long const times = (m + copies - 1 - copy) / copies;
    long way_down = 0, way_up = 0, way_up_and_w = 0;
    for (int chunk = 0, before = 0; chunk < problem.chunks; ++chunk) {
      int const rank = rank_of(where, p, chunk, copy);
      chunk_cost const& cost = problem.cost(chunk);
      if (chunk > 0) {
        chunk_cost const& above = problem.cost(chunk - 1);
        way_down += above.forward + problem.hop_time(before, rank, chunk - 1);
        way_up += above.backward_input + problem.hop_time(rank, before, chunk - 1);
        way_up_and_w += above.backward_input + problem.hop_time(rank, before, chunk - 1);
      }
      if (cost.backward_weight > way_up_and_w) way_up_and_w = cost.backward_weight;
      both_ways.item[rank] += times * (cost.forward + cost.backward_input);
      work.item[rank] += times * (cost.forward + cost.backward_input + cost.backward_weight);
      lower(down.item[rank], way_down);
      lower(up.item[rank], way_up);
      lower(up_and_w.item[rank], way_up_and_w);
      before = rank;
    }
  }
  auto floor = flush_floor{};
  constexpr auto raise = [](long& most, long to) { most = to > most ? to : most; };
  for (int rank = 0; rank < p; ++rank) {
    raise(floor.makespan, down.item[rank] + work.item[rank]);
    raise(floor.makespan, down.item[rank] + both_ways.item[rank] + up_and_w.item[rank]);
    raise(floor.stage_local_span, work.item[rank]);
    // The first rank begins with the very first F and ends with a W after the very last B.
    if (copies == 1)
      raise(floor.stage_local_span, down.item[rank] + both_ways.item[rank] + up.item[rank] +
                                        problem.cost(0).backward_weight);
  }
  return floor;
}

}  // namespace schedules

}  // namespace pp
