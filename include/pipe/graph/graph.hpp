// SPDX-License-Identifier: BSL-1.0
//
// A model as a value: its forward ops in order, the values they make, its parameters, and the layer
// boundaries at which it may be cut. Sizes are exact, because a constant with unused room is paid
// for at every copy.
#pragma once

#include <pipe/base/view.hpp>
#include <pipe/graph/op.hpp>

namespace pp {

struct graph_size {
  int ops = 0, values = 0, parameters = 0, units = 0, inputs = 0;
};

/// What enters a model: the batch brings one of each, in this order.
struct input_record {
  shape form{};
  bool is_ids = false;
  int vocabulary = 0;    // of ids
  short leaf = 0;        // the type that says so, and its name if it has one
  bool of_loss = false;  // only the loss reads it
};
inline constexpr int max_inputs = 4;
/// The largest tensors: a value of one sample, and a parameter. What they take, and the work on
/// them, is counted in a long.
inline constexpr long most_numbers = (1L << 31) - 1, most_parameters = 1L << 36;

/// The most ops of a model. Compilers reach their limits earlier.
inline constexpr int most_ops = 32767;

/// One top-level layer: which ops, values and parameters are its own, and the shape that leaves it.
struct unit_record {
  int first_op = 0, first_value = 0, first_parameter = 0;
  short leaf = 0;    // its layer type
  operand result{};  // what the next layer reads
  shape out{};
};

/// What passes read of a model.
///
/// law: ops are in an order in which they can run; op i of unit u has unit u, and units are
///      ascending over ops, values and parameters. units.items[units.count] is an end marker.
struct graph_view {
  view<op> ops;
  view<value> values;
  view<pp::parameter> parameters;
  view<unit_record> units;
  view<input_record> inputs;
  shape output{};

  constexpr int first_op(int unit) const { return units.items[unit].first_op; }
  constexpr int first_value(int unit) const { return units.items[unit].first_value; }
  constexpr int first_parameter(int unit) const { return units.items[unit].first_parameter; }
  constexpr op const& loss() const { return ops.items[ops.count - 1]; }
};

/// The memory of a model's graph.
template <graph_size Size>
struct graph {
  static constexpr graph_size size = Size;
  op ops[Size.ops + 1];
  value values[Size.values + 1];
  parameter parameters[Size.parameters + 1];
  unit_record units[Size.units + 1];
  input_record inputs[Size.inputs + 1];
  shape output;

  constexpr operator graph_view() const {
    return graph_view{{ops, Size.ops},     {values, Size.values}, {parameters, Size.parameters},
                      {units, Size.units}, {inputs, Size.inputs}, output};
  }
  constexpr op const& loss() const { return ops[Size.ops - 1]; }
};

}  // namespace pp
