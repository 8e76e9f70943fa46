// SPDX-License-Identifier: BSL-1.0
//
// Times and saved memory of the stages: the problem that a schedule solves.
#pragma once

#include <pipe/passes/costs.hpp>
#include <pipe/passes/memory.hpp>
#include <pipe/passes/partition_policy.hpp>
#include <pipe/schedule/problem.hpp>

namespace pp::detail {

/// The time of a layer, from its number and the estimate: the estimate itself, or what is measured
/// if the partition policy has a profile.
template <class Partition>
struct time_by {
  constexpr chunk_cost operator()([[maybe_unused]] int layer, chunk_cost const& estimate) const {
    if constexpr (requires { typename Partition::profile; })
      return Partition::time_of(layer, estimate);
    else
      return estimate;
  }
};

/// Time of a layer per micro-batch: time_of(index, the estimate from the layer's cost), see
/// time_by. again: whether recomputation counts as part of backward, apart, or not at all.
///
/// units: FLOPs at full speed, or nanoseconds if time_of says what was measured
template <class TimeOf>
constexpr chunk_cost time_of_layer(unit_cost const& layer, int index, int samples,
                                   recompute_place again, TimeOf const& time_of) {
  auto const estimate = [&](op_list l) { return samples * estimated_time(layer[l]); };
  chunk_cost c{estimate(op_list::forward), estimate(op_list::input_gradients),
               estimate(op_list::weight_gradients)};
  c.recompute = again == recompute_place::nowhere ? 0 : estimate(op_list::recompute);
  c = time_of(index, c);
  if (again == recompute_place::ahead) return c;
  c.backward_input += c.recompute;
  c.recompute = 0;
  return c;
}

/// Time of stage [first, end) per micro-batch, and the bytes that F saves, R brings back and W
/// releases. hidden_percent: see Paired.
template <class TimeOf>
constexpr chunk_cost time_of_stage(unit_cost const* layers, int first, int end, int samples,
                                   recompute_place again, stage_bytes const& bytes,
                                   int hidden_percent, TimeOf const& time_of) {
  long const saved = bytes.record, brought = again == recompute_place::ahead ? bytes.pending : 0;
  chunk_cost c{0, 0, 0, detail::memory_change{saved, 0, -saved, brought}};
  c.recompute = 0;
  for (int u = first; u < end; ++u) {
    chunk_cost const layer = time_of_layer(layers[u], u, samples, again, time_of);
    c.forward += layer.forward;
    c.backward_input += layer.backward_input;
    c.backward_weight += layer.backward_weight;
    c.recompute += layer.recompute;
  }
  c.hidden = in_proportion(c.forward, hidden_percent, 100);
  return c;
}

/// Whether the sums of a plan stay far from 2^63. Checked for the time of a step; its FLOPs are no
/// larger, and its bytes a fraction.
constexpr bool is_countable(view<unit_cost> costs, int samples, int micro_batches) {
  double time = 0;
  for (unit_cost const& c : costs)
    for (op_list l : every_op_list) time += double(estimated_time(c[l]));
  return time * samples * micro_batches < double(1L << 62);
}

}  // namespace pp::detail
