// SPDX-License-Identifier: BSL-1.0
//
// Times and saved memory of the stages: the problem that a schedule solves.
#pragma once

#include <pipe/passes/costs.hpp>
#include <pipe/schedule/problem.hpp>

namespace pp::detail {

/// Time of a layer per micro-batch: estimated from the layer's cost, or measured if the partition
/// policy has a profile. `recomputes`: recomputation counts as part of backward.
///
/// units: FLOPs at full speed, or nanoseconds with a profile
template <class Partition>
constexpr chunk_cost time_of_layer(unit_cost const& layer, int index, int samples,
                                   bool recomputes) {
  auto const estimate = [&](op_list l) { return samples * estimated_time(layer[l]); };
  chunk_cost c{estimate(op_list::forward), estimate(op_list::input_gradients),
               estimate(op_list::weight_gradients)};
  long const recompute = recomputes ? estimate(op_list::recompute) : 0;
  if constexpr (requires { typename Partition::profile; })
    c = Partition::time_of(index, c, recompute);
  else
    c.backward_input += recompute;
  return c;
}

/// Time of stage [first, end) per micro-batch, and the bytes that F saves and W releases.
/// hidden_percent: see Paired.
template <class Partition>
constexpr chunk_cost time_of_stage(unit_cost const* layers, int first, int end, int samples,
                                   bool recomputes, long saved, int hidden_percent) {
  chunk_cost c{0, 0, 0, detail::memory_change{saved, 0, -saved}};
  for (int u = first; u < end; ++u) {
    chunk_cost const layer = time_of_layer<Partition>(layers[u], u, samples, recomputes);
    c.forward += layer.forward;
    c.backward_input += layer.backward_input;
    c.backward_weight += layer.backward_weight;
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
