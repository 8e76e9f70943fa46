// SPDX-License-Identifier: BSL-1.0
//
// The cost of each layer: the numbers that a model is cut by.
#pragma once

#include <pipe/graph/cost.hpp>
#include <pipe/passes/op_list.hpp>

namespace pp {

/// Of a unit and one sample: forward, B, W, and what runs again.
using unit_cost = per_op_list<cost>;

/// shape: ops of any units -> costs[units], to which those of list l are added
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

}  // namespace pp
