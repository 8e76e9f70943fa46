// SPDX-License-Identifier: BSL-1.0
//
// The plan of a compiled pipeline: times from the passes and the schedule, bytes from the memory
// map.
#pragma once

#include <type_traits>

#include <pipe/base/bytes.hpp>
#include <pipe/graph/position_tables.hpp>
#include <pipe/passes/costs.hpp>
#include <pipe/plan/compiled/stage_times.hpp>
#include <pipe/plan/plan.hpp>
#include <pipe/runtime/description.hpp>
#include <pipe/schedule/certificate.hpp>
#include <pipe/schedule/in_flight.hpp>
#include <pipe/schedule/policy.hpp>

namespace pp::detail {

/// Time that a chunk is computed for, per micro-batch, R included where it is apart.
constexpr long time_of(chunk_cost const& c, chunk_description const& chunk) {
  return c.forward + c.backward_input + c.backward_weight +
         (chunk.first_kept > 0 ? c.recompute : 0);
}
/// The most that any rank computes for a micro-batch; for one of r micro-batches if there are r in
/// its stage.
///
/// chunks: with their ranks
template <int Stages, int Ranks, class Problem>
constexpr long slowest_rank(Problem const& problem, list<chunk_description, Stages> const& chunks) {
  list<long, Ranks> time;
  long slowest = 0;
  for (int s = 0; s < Stages; ++s) {
    long& all = time[chunks[s].rank];
    all += time_of(problem.cost(s), chunks[s]) / chunks[s].holders;
    if (all > slowest) slowest = all;
  }
  return slowest;
}

/// The share of a step's time above its floor: of the makespan, or of the period. 1 if the period
/// is not known.
template <class P, class Problem>
constexpr double gap_of(Problem const& problem) {
  auto const& when = P::timeline();
  long time = when.makespan, floor = 0, steps = 1;
  auto const raise_to_busiest = [&] {
    for (int rank = 0; rank < P::ranks; ++rank) raise(floor, when.busy(rank));
  };
  if constexpr (P::overlap != step_overlap::none) {
    time = P::work::period().time;
    steps = P::work::period().steps;
    raise_to_busiest();
  } else if constexpr (std::is_same_v<std::remove_cvref_t<decltype(P::where)>, placement>) {
    if (P::table().trains)
      floor = certify(problem, P::table(), when).floor.makespan;
    else
      raise_to_busiest();
  } else {
    raise_to_busiest();
  }
  if (time == 0) return 1;
  return floor * steps < time ? 1 - static_cast<double>(floor * steps) / static_cast<double>(time)
                              : 0;
}

/// The layer of a stage that takes as long as the whole stage, or -1. time: of the stage
template <class P>
constexpr int limiting_layer(int first, int end, long time, bool recomputes) {
  for (int u = first; u < end; ++u) {
    chunk_cost const c = time_of_layer(P::work::costs()[u], u, P::samples, recompute_place::ahead,
                                       time_by<typename P::partition>{});
    if (c.forward + c.backward_input + c.backward_weight + (recomputes ? c.recompute : 0) == time)
      return u;
  }
  return -1;
}

/// The plan of P, a compiled_pipeline or a planned_pipeline.
///
/// g: the model, with or without ops and values. problem, map: P::work::times(), P::memory()
template <class P, class Problem, class Map>
constexpr plan_of<P::stages, P::ranks> make_plan(graph_view const& g, Problem const& problem,
                                                 Map const& map) {
  constexpr int stages = P::stages, ranks = P::ranks, samples = P::samples,
                micro_batches = P::micro_batches;
  int const* const cuts = P::work::cuts();
  plan_of<stages, ranks> p;
  p.accumulations = P::sum::accumulations;
  p.zero = P::zero::level;
  p.arenas = {map.chunks.items,
              stages,
              p.accumulations,
              p.zero,
              long(sizeof(typename P::element)),
              P::sum::room,
              P::divides_gradients,
              long(sizeof(typename P::value))};
  p.rank_memory = map.rank.items;
  p.micro_batches = micro_batches;
  p.micro_batch_size = samples;
  p.threads = P::threads;
  p.schedule = P::schedule::name;
  p.optimizer = P::optimizer::name;
  p.precision = P::precision::name;
  p.kernels = P::group_count();
  p.bubble = P::timeline().bubble_by_makespan();
  p.bubble_stage_local = P::timeline().bubble_by_stage_local_span();
  p.gap = gap_of<P>(problem);
  p.proved = p.gap == 0;
  if constexpr (P::overlap != step_overlap::none) {
    p.period = P::work::period();
    p.bubble_steady = p.period.idle_share(P::timeline().total_busy(), ranks);
  }
  p.links = P::links();
  long total = 0;
  double slowest = 0;
  int last = 0;  // of the slowest stages
  for (int s = 0; s < stages; ++s) {
    long const time = time_of(problem.cost(s), map.chunks[s]);
    total += time;
    if (double const each = double(time) / map.chunks[s].holders; each >= slowest)
      slowest = each, last = s;
  }
  if (stages > 1)
    p.limiting_layer =
        limiting_layer<P>(cuts[last], cuts[last + 1], time_of(problem.cost(last), map.chunks[last]),
                          map.chunks[last].first_kept > 0);
  p.imbalance = slowest * map.holders.size() / double(total);
  for (int s = 0; s < stages; ++s) {
    chunk_description const& c = map.chunks[s];
    stage_plan& q = p.stages[s];
    q.rank = c.rank;
    q.first_layer = cuts[s];
    q.end_layer = cuts[s + 1];
    q.in = s == 0 ? g.inputs.items[0].form : g.units.items[cuts[s] - 1].out;
    q.out = g.units.items[cuts[s + 1] - 1].out;
    for (parameter_place const& place : c.parameters) {
      if (place.shared || is_table(g.parameters.items[place.index].initial.kind)) continue;
      if (place.is_buffer) {
        q.buffers += place.elements();
        continue;
      }
      q.parameters += place.elements();
      if (place.trained) q.trained += place.elements();
    }
    for (int u = q.first_layer; u < q.end_layer; ++u) {
      unit_cost const& layer = P::work::costs()[u];
      q.forward_flops += samples * layer[op_list::forward].flops;
      q.backward_flops += samples * (layer[op_list::input_gradients].flops +
                                     layer[op_list::weight_gradients].flops);
      if (c.first_kept > 0) q.recompute_flops += samples * layer[op_list::recompute].flops;
    }
    q.share = double(time_of(problem.cost(s), c)) / double(total);
    // As norms_of() and loss_of() have them.
    p.norm_bytes[c.rank] +=
        (2 * c.parameters.count + (s + 1 == stages ? P::step::losses : 0)) * long(sizeof(double));
    q.ranks = c.holders;
    if (c.holders > 1) q.apart = map.holders[c.first_holder + 1].rank - c.rank;
    q.in_flight = P::work::in_flight(s);
    program_set const& set = c.first_kept > 0 ? c.dropping : c.keeping;
    q.forward_kernels = set.programs[int(program::forward)].count;
    for (int k = 1; k < program_count; ++k) q.backward_kernels += set.programs[k].count;
    q.parameter_bytes = c.sizes.parameters + align_up(c.sizes.copies) -
                        (p.zero > 2 && P::widths.has_copies()
                             ? c.sizes.divided / P::widths.element * P::widths.value
                             : 0);
    q.gradient_bytes = c.sizes.trained;
    // With ZeRO some of this is no part of the chunk: a replica has what it owns at the arena's
    // end.
    long const apart = (p.zero > 0 ? c.sizes.state - c.sizes.host_state : 0) +
                       (p.arenas.divides_gradients ? c.sizes.divided : 0) +
                       (p.zero > 2 ? c.sizes.divided : 0);
    q.host_bytes = c.sizes.host_state;
    // The state and the averages end where versions begin, or the 16-bit copies before these.
    long const copies = P::widths.has_transposes ? 0 : align_up(c.sizes.copies);
    q.optimizer_bytes =
        c.versions.begin - copies - c.state + (p.zero > 0 ? c.sizes.state - c.sizes.host_state : 0);
    q.transposed_bytes =
        align_up(c.sizes.transposed) - (p.zero > 2 ? c.sizes.divided_transposed : 0);
    q.saved_bytes =
        c.keeping.records.bytes() + c.dropping.records.bytes() + c.rings.pending.bytes();
    q.boundary_bytes = c.rings.boundary.bytes() + c.rings.gradient.bytes() +
                       c.rings.received.bytes() + c.rings.received_gradient.bytes();
    q.buffer_bytes = align_up(c.sizes.buffers) + c.state - c.sums;
    q.versions = c.versions.slots;
    q.version_bytes = c.versions.slots > 1 ? c.sizes.weights - (c.versions.begin - c.values) : 0;
    q.bytes = c.bytes() + apart;
    q.copied_bytes = c.sizes.copy;
    p.buffers += q.buffers;
    p.parameters += q.parameters;
    p.trained += q.trained;
    p.step_flops += p.accumulations * micro_batches * (q.forward_flops + q.backward_flops);
    if (q.in_flight > p.peak_in_flight) p.peak_in_flight = q.in_flight;
  }
  for (int r = 0; r < ranks; ++r) {
    p.rank_bytes[r] = map.rank[r].bytes;
    p.host_bytes[r] = map.rank[r].host_bytes;
    p.staging_bytes[r] = map.rank[r].staging_bytes;
    p.bookkeeping_bytes[r] = map.rank[r].bookkeeping_bytes;
    p.summed_bytes[r] = map.rank[r].level_bytes;
    p.gradient_sum_bytes[r] = levels_of(p.accumulations) * map.rank[r].level_bytes;
    p.bytes += map.rank[r].bytes;
  }
  return p;
}

}  // namespace pp::detail
