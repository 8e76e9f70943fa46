// SPDX-License-Identifier: BSL-1.0
//
// The axes of a model's inputs: which inputs have their numbers by the same positions.
#pragma once

#include <pipe/graph/graph.hpp>

namespace pp::detail {

/// Whether an op of this kind joins rows of in[0] and of in[1], which are alike.
constexpr bool joins_rows(op_kind kind) {
  row_rule const rule = row_rule_of(kind);
  return rule == row_rule::add || rule == row_rule::multiply || rule == row_rule::concat ||
         rule == row_rule::dot || rule == row_rule::scale;
}

/// Makes the axes of inputs whose rows an op joins, such as words and their types, one axis, that
/// of the first of them. Inputs that a loss reads by rows get the axis of these rows.
template <graph_size Size>
constexpr void join_axes([[maybe_unused]] graph<Size>& g) {
  if constexpr (Size.inputs > 1) {
    unsigned char joined[max_inputs + 1]{};  // by axis: the one that it becomes
    for (int i = 1; i <= max_inputs; ++i) joined[i] = static_cast<unsigned char>(i);
    unsigned char axis[Size.values + 1]{};  // of each value
    auto const positions = [&g](int a) { return g.inputs[a - 1].form.elements(); };
    for (int i = 0; i < Size.ops; ++i) {
      op const& o = g.ops[i];
      for (int k = 0; k < op::max_out; ++k)
        if (operand const y = o.out[k]; y.where == space::value)
          axis[y.index] = axis_of_result(o, k);
      if (!joins_rows(o.kind) || o.in[1].where != space::value) continue;
      int const a = joined[o.axis], b = joined[axis[o.in[1].index]];
      if (a == 0 || b == 0 || a == b || positions(a) != positions(b)) continue;
      for (unsigned char& to : joined)
        if (to == a || to == b) to = static_cast<unsigned char>(a < b ? a : b);
    }
    for (int i = 0; i < Size.inputs; ++i) g.inputs[i].axis = joined[g.inputs[i].axis];
    for (int i = 0; i < Size.ops; ++i) {
      op& o = g.ops[i];
      o.axis = joined[o.axis];
      o.key_axis = joined[o.key_axis];
      for (int k = 1; is_loss(o.kind) && o.axis != 0 && k < op::max_in; ++k)
        if (o.in[k].where == space::input) g.inputs[o.in[k].index].axis = o.axis;
    }
  }
}

}  // namespace pp::detail
