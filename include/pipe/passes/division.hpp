// SPDX-License-Identifier: BSL-1.0
//
// The graph of one plane, with what each plane has of every value and of every parameter, and the
// memory in which passes/divide.hpp makes this graph.
#pragma once

#include <pipe/graph/copies.hpp>
#include <pipe/graph/operand_shape.hpp>
#include <pipe/graph/value_division.hpp>

namespace pp::detail {

/// How an op is to read its main operand, where the caller does not leave this to the pass. An op
/// whose kind, sizes or parameters allow no such reading reads as if nothing had been said.
enum class operand_reading : unsigned char {
  free,
  whole,       // the op is computed whole by every plane
  replicated,  // whole, for a divided result: products and convolutions
  rows,        // a plane reads some rows, with whole parameters
  columns      // a plane reads some columns of each row
};

constexpr value_division next_copy(value_division const&, value_division const& b) { return b; }

/// The graph of one plane. All planes have this graph: what differs is the part that a plane has.
///
/// law: an op reads and writes as many numbers as the parts of its operands and results have
struct division_view {
  graph_view local;
  view<value_division> values;          // by value of `local`
  view<parameter_division> parameters;  // by parameter
  int planes = 1;
};

/// The output of `divide`. Sinks without memory only count.
struct division_sinks {
  sink<op> ops;
  sink<value> values;
  sink<value_division> divisions;  // by value
  sink<unit_record> units;
  parameter* parameters = nullptr;
  parameter_division* boxes = nullptr;

  constexpr bool keeps() const { return parameters != nullptr; }
};

/// What the pass knows of a value of the undivided graph.
struct value_note {
  operand at{};               // the value of the plane's graph that later ops read
  value_division as{};        // its division
  int maker = -1;             // the op that computes it
  int readers = 0;            // operands of ops
  bool crosses = false;       // from one copy of a Repeat to the next, so in one division for all
  bool was_gathered = false;  // whole because an op could not take it divided
  bool is_padded = false;     // logits, whose columns may be padded
  blocks wanted{};            // the runs of a row that readers cut it into, count 1

  /// The newest exchanges of the value, which readers of one unit share.
  struct exchanged {
    operand at{};
    value_division as{};
    short unit = -1;
  };
  static constexpr int kept = 3;
  exchanged copies[kept]{};
  int next = 0;
};

/// What the pass knows of an op of the undivided graph: the place of a product in a low-rank term
/// that is added to another product.
struct op_note {
  enum class term : unsigned char { none, first, second };
  term low_rank = term::none;
  int base = -1;            // the other product
  bool by_columns = false;  // has a result divided by columns
};

/// What the pass knows of a parameter.
struct parameter_note {
  parameter_division box{};
  bool is_decided = false;   // by an earlier op that reads it or its tie
  bool stays_whole = false;  // as ops want different boxes of it
};

/// Working memory of `divide`, initially default: an item for each value, op and parameter of the
/// undivided graph.
struct division_scratch {
  value_note* values = nullptr;
  op_note* ops = nullptr;
  parameter_note* parameters = nullptr;
  operand_reading const* readings = nullptr;  // by op; null: all free
};

/// The memory of a plane's graph.
template <graph_size Size>
struct divided_graph {
  static constexpr graph_size size = Size;
  graph<Size> local;
  value_division values[Size.values + 1];
  parameter_division parameters[Size.parameters + 1];
  int planes = 1;

  constexpr division_sinks sinks() {
    return division_sinks{{local.ops},   {local.values},   {values},
                          {local.units}, local.parameters, parameters};
  }
  constexpr operator division_view() const {
    return division_view{local, {values, Size.values}, {parameters, Size.parameters}, planes};
  }
};

}  // namespace pp::detail
