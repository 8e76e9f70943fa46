// SPDX-License-Identifier: BSL-1.0
//
// The items of later copies of a Repeat, made from the items of the two copies before them. A
// compiler spends about a microsecond on each operation of a constant evaluation, so a deep model's
// copies are not described or differentiated one by one.
#pragma once

#include <pipe/graph/graph.hpp>

namespace pp::detail {

/// The item of the next copy, where a and b are the same item of two successive copies: the numbers
/// of ops, units, values, parameters and streams increase by the difference of b and a; everything
/// else is as in b.
constexpr operand next_copy(operand a, operand b) {
  b.index += b.index - a.index;
  return b;
}
/// The same for an op. An operand that both copies share, such as a value from before the
/// repetition, stays as it is.
constexpr op next_copy(op const& a, op b) {
  b.unit = short(b.unit + (b.unit - a.unit));
  b.origin += b.origin - a.origin;
  int const ins = b.ins;
  for (int k = 0; k < ins; ++k) b.in[k].index += b.in[k].index - a.in[k].index;
  b.out[0].index += b.out[0].index - a.out[0].index;
  for (int k = 1; k < op::max_out && b.out[k].where != space::none; ++k)
    b.out[k].index += b.out[k].index - a.out[k].index;
  return b;
}
constexpr value next_copy(value a, value b) {
  b.unit = short(b.unit + (b.unit - a.unit));
  return b;
}
constexpr parameter next_copy(parameter const& a, parameter b) {
  b.unit = short(b.unit + (b.unit - a.unit));
  return b;
}
constexpr unit_record next_copy(unit_record const& a, unit_record b) {
  b.first_op += b.first_op - a.first_op;
  b.first_value += b.first_value - a.first_value;
  b.first_parameter += b.first_parameter - a.first_parameter;
  b.result = next_copy(a.result, b.result);
  if (b.middle >= 0) b.middle += b.middle - a.middle;
  return b;
}

/// Adds `times` copies to a list that ends in two copies of `period` items each. If `items` is
/// null, the new items are only counted.
///
/// needs: count >= 2 * period; room for times * period more items
template <class T>
constexpr void add_copies(T* items, int& count, int period, int times) {
  int const end = count + times * period;
  if (items != nullptr)
    for (int i = count; i < end; ++i)
      items[i] = next_copy(items[i - 2 * period], items[i - period]);
  count = end;
}
template <class T>
constexpr void add_copies(sink<T>& list, int period, int times) {
  add_copies(list.items, list.count, period, times);
}
/// The same for all lists of a graph but its inputs: a period is the items from the sizes `before`
/// to `sizes`. For a graph without room items are only counted.
template <graph_size Room>
constexpr void add_copies(graph<Room>& g, graph_size& sizes, graph_size const& before, int times) {
  constexpr bool keeps = Room.units > 0;
  add_copies(keeps ? g.ops : nullptr, sizes.ops, sizes.ops - before.ops, times);
  add_copies(keeps ? g.values : nullptr, sizes.values, sizes.values - before.values, times);
  add_copies(keeps ? g.parameters : nullptr, sizes.parameters, sizes.parameters - before.parameters,
             times);
  add_copies(keeps ? g.units : nullptr, sizes.units, sizes.units - before.units, times);
}

}  // namespace pp::detail
