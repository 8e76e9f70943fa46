// SPDX-License-Identifier: BSL-1.0
//
// A kernel group: ops that run as one kernel. The description of a group has geometry and structure
// but no values, so equal groups of a model compare equal and are compiled once. The values that a
// launch reads and writes are in a list of operands beside the description.
#pragma once

#include <cstdint>

#include <pipe/base/static_vector.hpp>
#include <pipe/graph/op.hpp>

namespace pp::detail {

/// One pointwise op of a group: v = op(v, operand), optionally stored. Operands are given as
/// indices into a launch's operand list.
struct pointwise_op {
  op_kind kind;
  short leaf;           // of a map: the layer type that has its formula
  signed char operand;  // the second operand, or -1; a third one (has_third) follows it
  signed char store;    // the operand to which v is stored after this op, or -1
  bool is_joined;       // indivisible from the product before it: see joined_ops.hpp
  // No default initialisers: with them nvcc's front end takes elements of an array for
  // uninitialised.
  friend constexpr bool operator==(pointwise_op const&, pointwise_op const&) = default;
};

/// Whether the second operand of a pointwise op is a matrix of the shape of the op's result.
constexpr bool reads_matrix(pointwise_op const& s) {
  return s.operand >= 0 && s.kind != op_kind::bias && s.kind != op_kind::row_bias &&
         s.kind != op_kind::prelu && s.kind != op_kind::dropout;
}

/// A kernel: anchor in -> [prologue on the anchor's main operand] -> anchor -> [epilogue on the
/// anchor's result] -> out.
struct group {
  /// A group has at most max_ops ops, its anchor included (see joins), and max_operands operands.
  static constexpr int max_ops = 8, max_operands = 20;

  op_kind anchor = op_kind::none;
  short leaf = 0;                   // of an anchor with a formula: the layer type that has it
  int rows = 0, columns = 0;        // per sample, as in op
  detail::attributes attributes{};  // of the anchor
  /// Indices of the anchor's operands and results, -1 for absent ones.
  signed char in[op::max_in]{-1, -1, -1, -1, -1, -1};
  signed char out[op::max_out]{-1, -1, -1};
  static_vector<pointwise_op, max_ops> prologue, epilogue;
  /// The number of operands of a launch.
  int operands = 0;
  int present = 0;  // bit k: in[k] is present; bit max_in + k: out[k] is

  /// in and out need no comparison: operands are numbered in order, so they follow from `present`.
  friend constexpr bool operator==(group const& a, group const& b) {
    return a.anchor == b.anchor && a.columns == b.columns && a.rows == b.rows &&
           a.present == b.present && a.operands == b.operands && a.leaf == b.leaf &&
           a.attributes == b.attributes && a.prologue == b.prologue && a.epilogue == b.epilogue;
  }
};

/// Calls written(index) for every result of the group, with -1 for a result that is not stored.
template <class Written>
constexpr void for_each_written(group const& g, Written written) {
  for (signed char const index : g.out) written(index);
  for (pointwise_op const& s : g.prologue) written(s.store);
  for (pointwise_op const& s : g.epilogue) written(s.store);
}

/// The operands of one launch, by index.
using launch_operands = static_vector<operand, group::max_operands>;

/// A group and the operands of one of its launches.
struct described_group {
  group shape;
  launch_operands operands;
};

/// A launch before addresses are known: ops [begin, end) of a list, as distinct group number
/// `group`, with operands [first, first + operands) of the list's operands. first_origin,
/// last_origin: the origins of the first and the last op. unit: the unit of the first op.
struct segment {
  int begin = 0, end = 0;
  int group = 0;
  int first = 0, operands = 0;
  int first_origin = 0, last_origin = 0;
  short unit = 0;
  unsigned char axis = 0;      // of the first op, as of all ops of the group: see op::axis
  unsigned char key_axis = 0;  // of an attention to another sequence: see op::key_axis
  // Of the first op's results on another axis, see axis_of_result: a bit for each operand, and the
  // axis.
  unsigned apart = 0;
  unsigned char apart_axis = 0;
};

}  // namespace pp::detail
