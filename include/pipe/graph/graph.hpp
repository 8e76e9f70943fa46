// SPDX-License-Identifier: BSL-1.0
//
// A model as a value: its forward ops in order, their values, its parameters, and the layer
// boundaries at which it may be cut. Array sizes are exact, since unused room in a constant costs
// compile time at every copy.
#pragma once

#include <pipe/base/view.hpp>
#include <pipe/graph/op.hpp>

namespace pp::detail {

/// The lengths of the lists of a graph.
struct graph_size {
  int ops = 0, values = 0, parameters = 0, units = 0, inputs = 0;
};

/// An input of a model. A batch has one tensor for each input, in the order of the records.
struct input_record {
  sample_shape form{};
  bool is_ids = false;
  int vocabulary = 0;    // of ids
  short leaf = 0;        // the type of the input or of the loss option, which may have a name
  bool of_loss = false;  // read by the loss only
  // 1 + the number of the input of token ids by whose positions the input has its numbers: itself,
  // if the ids are looked up, each in a row of its own; else 0. See op::axis
  unsigned char axis = 0;
};
/// Whether input `number` is an axis: token ids with positions of their own.
constexpr bool is_axis(input_record const& x, int number) { return x.axis == number + 1; }
/// The numbers that an input has for each position of its axis; of one without an axis all.
template <class Inputs>
constexpr long numbers_of_row(Inputs const& inputs, int number) {
  input_record const& in = inputs[number];
  return in.form.elements() / (in.axis == 0 ? 1 : inputs[in.axis - 1].form.elements());
}
/// Whether an input may have a gradient: numbers that layers read.
constexpr bool has_gradient(input_record const& x) { return !x.is_ids && !x.of_loss; }
/// The maximum number of inputs of a model, inputs of the loss included.
inline constexpr int max_inputs = 4;
/// The maximum elements of a value per sample, and of a parameter. Sizes in bytes and counts of
/// work then fit a long.
inline constexpr long most_numbers = (1L << 31) - 1, most_parameters = 1L << 36;

/// The maximum number of ops of a model, so that indices of units fit a short. Compilers reach
/// their limits earlier.
inline constexpr int most_ops = 32767;
/// The maximum number of layers around a layer: compilers nest 512 calls, and each layer takes up
/// to five.
inline constexpr int most_nested = 96;

/// One unit, a top-level layer: the beginning of its ops, values and parameters, and its result.
struct unit_record {
  int first_op = 0, first_value = 0, first_parameter = 0;
  short leaf = 0;    // its layer type
  operand result{};  // the value that the next layer reads
  sample_shape out{};
  int middle = -1;         // of a Reversible, the op y1 = x1 + F(x2)
  bool continues = false;  // the layer of the unit before
};

/// The copies of a `Repeat`: `units` units for each, from unit `first` on.
///
/// law: from the second copy on, the ops of a copy equal the ops of the next copy, but for the
///      numbers of units, values, parameters and streams
struct repetition {
  int first = 0, units = 0, copies = 0;

  /// The copy that has a unit; -1 for a unit outside.
  constexpr int copy_with(int unit) const {
    int const at = unit - first;
    return at >= 0 && at < units * copies ? at / units : -1;
  }
};
/// The first repetitions of a model that have more than two copies, units ascending.
struct repetition_list {
  static constexpr int most = 4;
  repetition items[most]{};
  int count = 0;

  /// Adds a repetition of `units` units from unit `first` on, all copies together, in place of
  /// repetitions inside it. A full list stays as it is: differentiation then goes through each
  /// copy.
  constexpr void note(int first, int units, int copies) {
    if (units == 0) return;  // inside a unit
    while (count > 0 && items[count - 1].first >= first) --count;
    if (count < most) items[count++] = repetition{first, units / copies, copies};
  }
};

/// A model as the passes read it.
///
/// law: ops are in an executable order; an op, value or parameter of unit u has unit u, and units
///      ascend over each list. units.items[units.count] is an end marker.
struct graph_view {
  view<op> ops;
  view<value> values;
  view<detail::parameter> parameters;
  view<unit_record> units;
  view<input_record> inputs;
  sample_shape output{};
  view<repetition> repetitions{};  // units ascending

  /// The beginning of a unit's ops, values and parameters; unit == units.count gives the ends.
  constexpr int first_op(int unit) const { return units.items[unit].first_op; }
  constexpr int first_value(int unit) const { return units.items[unit].first_value; }
  constexpr int first_parameter(int unit) const { return units.items[unit].first_parameter; }
  constexpr op const& loss() const { return ops.items[ops.count - 1]; }
};

/// Whether any parameter is trained; whether any shares the memory of another (Tied).
constexpr bool any_trained(graph_view const& g) {
  for (detail::parameter const& p : g.parameters)
    if (p.trained) return true;
  return false;
}
constexpr bool any_tied(graph_view const& g) {
  for (detail::parameter const& p : g.parameters)
    if (p.tied_to >= 0) return true;
  return false;
}

/// The memory of a model's graph. Each list has one extra item: arrays may not be empty, and units
/// have an end marker.
template <graph_size Size>
struct graph {
  static constexpr graph_size size = Size;
  op ops[Size.ops + 1];
  value values[Size.values + 1];
  parameter parameters[Size.parameters + 1];
  unit_record units[Size.units + 1];
  input_record inputs[Size.inputs + 1];
  sample_shape output;
  repetition_list repetitions;

  /// A view, valid as long as this object.
  constexpr operator graph_view() const {
    return graph_view{{ops, Size.ops},
                      {values, Size.values},
                      {parameters, Size.parameters},
                      {units, Size.units},
                      {inputs, Size.inputs},
                      output,
                      {repetitions.items, repetitions.count}};
  }
  constexpr op const& loss() const { return ops[Size.ops - 1]; }
};

}  // namespace pp::detail
