// SPDX-License-Identifier: BSL-1.0
//
// Lower bounds on the time of a schedule under a memory limit. A floor makes a simulated time a
// certificate: the gap between the two is the most that any other schedule of the placement could
// still gain in that memory. docs/schedules/floors.md has the proofs.
#pragma once

#include <climits>

#include <pipe/schedule/memory_floors.hpp>
#include <pipe/schedule/placement.hpp>
#include <pipe/schedule/problem.hpp>
#include <pipe/schedule/required.hpp>
#include <pipe/schedule/scratch.hpp>
#include <pipe/schedule/two_way_floors.hpp>

namespace pp {

namespace schedules {

/// Lower bounds on the makespan (from the first F to the last W) and on the stage-local span of any
/// schedule with a flush on a placement, in which no rank needs more memory than the limit.
///
/// law:    one chunk, equal times, no limit: makespan >= (P-1)(TF+Tc) + M T and >=
///         (P-1)(TF+TB+2Tc) + M(TF+TB) + TW
/// law:    one chunk, equal times, no limit: stage-local span - M T >= max(0, (P-1)(TF+TB+2Tc) -
///         (M-1)TW)
/// law:    a vee of two chunks, TF = TB = TW = 1, no hops, k chunks of memory, P <= k <= 2P-2,
///         M >= P: stage-local span - 6M >= max(6P - 1 - 3k, 2P - 1 - M)
/// law:    falls where the limit rises
/// source: Qi et al., Zero Bubble Pipeline Parallelism, 2024, section 2.3, for one chunk, equal
///         times and no limit
struct flush_floor {
  long makespan = 0;
  long stage_local_span = 0;
  /// The rank that bounds each, and what keeps this rank.
  floor_bound makespan_by{}, span_by{};
};

/// The floor of a problem on a placement, under the memory limit of each rank.
///
/// cost:   linear in the chunks, and under a limit in the micro-batches that a rank holds at once
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
        way_down += detail::least_forward(above) + problem.hop_time(before, rank, chunk - 1);
        way_up += above.backward_input + problem.hop_time(rank, before, chunk - 1);
        way_up_and_w += above.backward_input + problem.hop_time(rank, before, chunk - 1);
      }
      if (cost.backward_weight > way_up_and_w) way_up_and_w = cost.backward_weight;
      both_ways.item[rank] += times * (detail::least_forward(cost) + cost.backward_input);
      work.item[rank] +=
          times * (detail::least_forward(cost) + cost.backward_input + cost.backward_weight);
      lower(down.item[rank], way_down);
      lower(up.item[rank], way_up);
      lower(up_and_w.item[rank], way_up_and_w);
      before = rank;
    }
  }
  auto makespan = floor_bound{}, span = floor_bound{};
  for (int rank = 0; rank < p; ++rank) {
    long const both = down.item[rank] + both_ways.item[rank];
    detail::raise(makespan, down.item[rank] + work.item[rank], rank, floor_reason::work);
    detail::raise(makespan, both + up_and_w.item[rank], rank, floor_reason::ways);
    detail::raise(span, work.item[rank], rank, floor_reason::work);
    // The first rank begins with the very first F and ends with a W after the very last B.
    if (copies == 1)
      detail::raise(span, both + up.item[rank] + problem.cost(0).backward_weight, rank,
                    floor_reason::ways);
  }
  if (copies > 1) {
    // The first F of all is on the first or on the last rank, whose span then begins with it.
    auto const bounds = detail::two_way_floor<Problem>(problem, where);
    auto first = floor_bound{LONG_MAX};
    for (int rank = 0; rank < p; ++rank) {
      detail::two_way_bounds const least = bounds.of(rank);
      detail::raise(span, least.span.time, rank, least.span.why);
      detail::raise(makespan, least.makespan.time, rank, least.makespan.why);
      bool const begins = rank == 0 || (rank == p - 1 && m > 1);
      if (begins && least.own_end.time < first.time) first = least.own_end;
    }
    detail::raise(span, first.time, first.rank, first.why);
    return {makespan.time, span.time, makespan, span};
  }
  // A rank above another waits for the other in between: from the F that goes down to the other,
  // until the gradient of the other's last B has come back up.
  auto const passed = detail::flush_ways(problem, where);
  auto const bounds = detail::memory_floor<Problem>(problem, where, passed);
  long above = LONG_MIN, w_above = LONG_MIN;
  for (int rank = 0; rank < p; ++rank) {
    long const way_down = passed.down.item[rank], way_up = passed.back.item[rank];
    long const w = problem.cost(rank).backward_weight;
    detail::raise(above, w - way_down - way_up);
    detail::raise(w_above, w - way_up);
    detail::rank_floor const least = bounds.of(rank);
    int const last = chunk_on(where, p, rank, problem.chunks / p - 1);
    auto last_b = floor_bound{both_ways.item[rank] + least.idle.time + way_up, rank,
                              least.idle.time > 0 ? least.idle.why : floor_reason::ways};
    detail::raise(last_b, least.last_forward.time + passed.way(last, rank) + way_up, rank,
                  least.last_forward.why);
    detail::raise(span, least.time.time, rank, least.time.why);
    detail::raise(span, way_down + last_b.time + above, rank, last_b.why);
    detail::raise(makespan, way_down + least.time.time, rank, least.time.why);
    detail::raise(makespan, way_down + last_b.time + w_above, rank, last_b.why);
  }
  return {makespan.time, span.time, makespan, span};
}

}  // namespace schedules

}  // namespace pp
