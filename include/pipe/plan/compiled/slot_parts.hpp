// SPDX-License-Identifier: BSL-1.0
//
// The values in a slot of a boundary between stages, with the rows of each, for a transport that
// sends the rows that are there: see Lengths.
#pragma once

#include <pipe/base/list.hpp>
#include <pipe/base/view.hpp>
#include <pipe/passes/boundary.hpp>
#include <pipe/transport/slot_part.hpp>

namespace pp::detail {

/// The axis of the rows of a value: see axis_of_result.
constexpr int axis_of_value(view<op> forward, view<op> backward, int v) {
  for (view<op> const& ops : {forward, backward})
    for (op const& o : ops)
      for (int k = 0; k < op::max_out; ++k)
        if (o.out[k] == value_operand(v)) return axis_of_result(o, k);
  return 0;
}

/// The parts of boundary number `Boundary` of a compilation, of its values or its gradients.
template <class Passes, int Boundary, bool OfGradients>
constexpr auto find_slot_parts() {
  constexpr boundary between = Passes::boundaries[Boundary];
  constexpr view<handed_on> items = OfGradients ? between.gradient : between.forward;
  constexpr value_table const& values = Passes::values;
  list<transports::slot_part, items.count> all;
  for (int i = 0; i < items.count; ++i) {
    int const v = items[i].what.index;
    all[i].offset = items[i].offset;
    all[i].bytes = values.bytes(v);
    all[i].axis = axis_of_value(Passes::forward.ops, Passes::backward.input_ops, v);
    if (all[i].axis == 0) continue;
    long const rows = values.samples * Passes::outline.inputs[all[i].axis - 1].form.elements();
    all[i].row_bytes = values.batch_elements(v) / rows *
                       (values.is_wide(v) ? values.widths.element : values.widths.value);
  }
  return all;
}

}  // namespace pp::detail
