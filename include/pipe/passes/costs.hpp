// SPDX-License-Identifier: BSL-1.0
//
// The cost of each layer, by which a model is partitioned.
#pragma once

#include <pipe/graph/cost.hpp>
#include <pipe/passes/op_list.hpp>

namespace pp::detail {

/// The costs of a unit per sample: forward, B, W, and recomputation.
using unit_cost = per_op_list<cost>;

/// Adds the costs of the ops of list l to the costs of their units.
///
/// shape: costs[units]
constexpr void add_costs(op_list l, view<op> ops, unit_cost* costs) {
  for (int i = 0; i < ops.count; ++i) {
    op const o = ops.items[i];
    costs[o.unit].of[int(l)] += cost_of(o);
  }
}

/// Estimated time of forward and backward, in units of one FLOP at full speed.
constexpr long training_time(unit_cost const& c) {
  return estimated_time(c[op_list::forward]) + estimated_time(c[op_list::input_gradients]) +
         estimated_time(c[op_list::weight_gradients]);
}

}  // namespace pp::detail
