// SPDX-License-Identifier: BSL-1.0
//
// Fusion of ops into kernel groups. The rules, applied to each list of ops from left to right:
//
//   1. A pointwise op joins the epilogue of the group before it if that group makes the op's main
//      operand.
//   2. A matmul, a norm or a softmax takes the pointwise ops before it as its prologue if they make
//      its main operand.
//   3. A bias gradient joins the weight gradient of the matmul, or the convolution, that shares its
//      operand.
//   4. Where values have 16 bits, an activation or a residual is indivisible from the product
//      before it (joined_ops.hpp). Such a product has no prologue: a prologue depends on cuts, and
//      could leave no room in the group for the joined op.
//
// A group never crosses a cut of the model. A value inside a group is written only if it is read
// outside the group.
#pragma once

#include <pipe/base/view.hpp>
#include <pipe/passes/fused_copies.hpp>
#include <pipe/passes/group.hpp>
#include <pipe/passes/known_groups.hpp>
#include <pipe/passes/joined_ops.hpp>

namespace pp::detail {

/// Whether op `at` of `count`, `next`, may join the group of ops [begin, at), which ends in op
/// `last`: rules 1 to 4 above.
constexpr bool joins(op const* ops, int begin, int at, int count, op const& last, op const& next,
                     bool const* read_once) {
  if (at - begin >= group::max_ops) return false;
  // Rule 3. A bias gradient is alone in its group until the weight gradient joins, which reads dy
  // as well.
  if (last.kind == op_kind::bias_gradient)
    return at - begin == 1 &&
           (next.kind == op_kind::matmul_weight_gradient ||
            next.kind == op_kind::convolution_weight_gradient) &&
           next.in[1] == last.in[0];
  if (next.in[0].index != last.out[0].index || !(next.in[0] == last.out[0]) ||
      next.in[0].where != space::value)
    return false;
  // Rule 1.
  if (is_pointwise(next.kind)) {
    if (!takes_epilogue(last.kind) || next.rows != last.rows || next.columns != last.columns)
      return false;
    // The second operand must be in memory before the group starts. An op with a third operand
    // takes the place of two ops, so that the group has no more operands than other groups.
    int places = at - begin + has_third(next.kind);
    for (int i = begin; i < at; ++i) {
      if (next.in[1].where == space::value && next.in[1] == ops[i].out[0]) return false;
      places += has_third(ops[i].kind);
    }
    return places < group::max_ops;
  }
  // Rule 2: all ops so far are pointwise, and the prologue covers the main operand row by row.
  if (!takes_prologue(next.kind)) return false;
  for (int i = begin; i < at; ++i)
    if (!is_pointwise(ops[i].kind)) return false;
  // Rule 4.
  if (read_once != nullptr && is_joined(ops, at, count, read_once)) return false;
  int const width =
      next.kind == op_kind::matmul ? next.attributes.contraction().inner : next.columns;
  return next.rows == last.rows && width == last.columns;
}

/// Describes the group of ops [begin, end). Its operands, by index, are written to `operands`.
///
/// The compiler spends much of its time here, so ops are copied and calls are written out.
///
/// law: operand 0 is the main operand of the first op if that op is pointwise, else of the anchor;
/// the
///      other operands follow in the order of the ops; pointwise ops without an anchor are all in
///      the epilogue
constexpr group describe_group(op const* ops, int begin, int end, int const* uses,
                               bool const* read_once, operand* operands) {
  group g;
  int anchor = begin;
  op a = ops[begin];
  bool const starts_pointwise = is_pointwise(a.kind);
  while (anchor + 1 < end && (a.kind == op_kind::bias_gradient || is_pointwise(a.kind)))
    a = ops[++anchor];
  // No anchor: pointwise ops alone.
  bool const chain_only = anchor + 1 == end && is_pointwise(a.kind);
  if (chain_only) anchor = -1;
  g.anchor = chain_only ? op_kind::pointwise : a.kind;
  g.rows = a.rows;
  g.columns = a.columns;
  if (!chain_only) {
    // For other kinds the leaf stays 0, so that equal kernels of different layer types are one
    // group.
    if (reads_layer(a)) g.leaf = a.leaf;
    g.attributes = a.attributes;
  }
  int n = 0, present = 1;
  operands[n++] = starts_pointwise ? ops[begin].in[0] : a.in[0];
  g.in[0] = 0;
  for (int i = begin; i < end; ++i) {
    op const o = ops[i];
    // A result whose only reader is the next op of the group never reaches memory.
    bool const inside = i + 1 < end && o.out[0].where == space::value &&
                        uses[o.out[0].index] == 1 && ops[i + 1].in[0] == o.out[0];
    if (i != anchor) {
      pointwise_op s{o.kind, 0, -1, -1, i > anchor && joins_product(ops, i, read_once)};
      if (is_by_leaf(o.kind)) s.leaf = o.leaf;
      if (o.ins > 1 && o.kind != op_kind::bias_gradient) {
        s.operand = static_cast<signed char>(n);
        operands[n++] = o.in[1];
        if (has_third(o.kind)) operands[n++] = o.in[2];
      }
      if (!inside) {
        s.store = static_cast<signed char>(n);
        operands[n++] = o.out[0];
      }
      if (i < anchor)
        g.prologue.items[g.prologue.count++] = s;
      else
        g.epilogue.items[g.epilogue.count++] = s;
      continue;
    }
    for (int k = 1; k < o.ins; ++k)
      if (o.in[k].where != space::none) {
        present |= 1 << k;
        g.in[k] = static_cast<signed char>(n);
        operands[n++] = o.in[k];
      }
    for (int k = 0; k < op::max_out; ++k)
      if (o.out[k].where != space::none && !(k == 0 && inside)) {
        present |= 1 << (op::max_in + k);
        g.out[k] = static_cast<signed char>(n);
        operands[n++] = o.out[k];
      }
  }
  g.operands = n;
  g.present = present;
  return g;
}

/// Fuses a list of ops into segments and distinct groups, greedily from left to right.
///
/// read_once: see joins_product()
/// law:       no segment has ops on both sides of a cut; the result does not depend on repetitions
/// cost:      linear in the ops for models that repeat their groups, with less for each op of a
///            copy
constexpr void fuse(view<op> list, view<repetition> repetitions, int const* uses,
                    bool const* read_once, short const* stage_of_unit, fuse_scratch scratch,
                    fused_sinks& f) {
  op const* const ops = list.items;
  int const count = list.count;
  fused_copies copies(list, repetitions, uses, read_once, stage_of_unit, scratch.sources);
  known_groups known(scratch, count);
  auto const describe = [&](int id) {
    // Groups beyond those that known_groups keeps are described again from their first segment.
    segment const& s = f.segments.items[f.distinct.items[id]];
    operand ignored[group::max_operands]{};
    return describe_group(ops, s.begin, s.end, uses, read_once, ignored);
  };
  for (int begin = 0; begin < count;) {
    begin = copies.add(begin, known, f);
    op last = ops[begin];
    unsigned char key_axis = last.key_axis;
    short const unit = last.unit;
    int const stage = stage_of_unit[unit];
    int end = begin + 1;
    for (; end < count; ++end) {
      op const next = ops[end];
      if (!joins(ops, begin, end, count, last, next, read_once) ||
          stage_of_unit[next.unit] != stage)
        break;
      last = next;
      if (key_axis == 0) key_axis = next.key_axis;
    }
    int const first = f.operands.count;
    group const g = describe_group(ops, begin, end, uses, read_once, f.operands.items + first);
    f.operands.count += g.operands;
    int const id = known.number(g, describe);
    if (id == f.distinct.count) f.distinct.push_back(f.segments.count);
    segment s{begin,
              end,
              id,
              first,
              g.operands,
              ops[begin].origin,
              ops[end - 1].origin,
              unit,
              ops[begin].axis,
              key_axis};
    for (int k = 0; k < op::max_out; ++k)
      if (unsigned char const axis = axis_of_result(ops[begin], k); axis != s.axis && g.out[k] >= 0)
        s.apart |= 1u << g.out[k], s.apart_axis = axis;
    f.segments.push_back(s);
    begin = end;
  }
}

}  // namespace pp::detail
