// SPDX-License-Identifier: BSL-1.0
//
// Ops that are indivisible from the matrix product before them. Where values have 16 bits, each op
// rounds its result, so that no bit depends on what is fused. A product with the activation or the
// residual behind it would be rounded twice, but a library's call that computes both rounds once.
// So such a pair is indivisible: in all programs of a model the pair is in one kernel group, and it
// is recomputed as a whole or not at all. The kernel or the call that computes the group may round
// in between or not, as long as it always does the same.
//
// Both ops are in one unit: a cut between them would round the value that crosses it, and the
// result would differ from that of the uncut model. The value to which a residual is added has no
// other reader: a program that recomputes only the addition would read the stored value, which is
// rounded. The value that an activation reads may have other readers, since the call that computes
// the activation stores this value as well.
//
// Joined to a matmul, with or without a bias: the activation behind it, or the residual that is
// added to its result. Joined to the input gradient of a matmul: the derivative of the activation
// that made the matmul's input.
#pragma once

#include <initializer_list>

#include <pipe/base/view.hpp>
#include <pipe/graph/op.hpp>

namespace pp::detail {

/// Whether op i is indivisible from the product before it.
///
/// read_once: by value, whether the model reads the value once; null where values have 32 bits:
///            then nothing is joined
/// law:       the answer depends neither on cuts nor on recomputation: the pair is in one unit, so
///            no cut divides it, and only the pair reads a value between its ops that is not stored
constexpr bool joins_product(op const* ops, int i, bool const* read_once) {
  if (read_once == nullptr || i < 1) return false;
  op_kind const kind = ops[i].kind;
  if (kind != op_kind::add && kind != op_kind::map && kind != op_kind::map_gradient) return false;
  auto const continues = [&](int k) {
    operand const x = ops[k - 1].out[0];
    return ops[k - 1].unit == ops[k].unit && ops[k].in[0] == x && x.where == space::value &&
           ops[k - 1].rows == ops[k].rows && ops[k - 1].columns == ops[k].columns;
  };
  bool const read_here_only = read_once[ops[i - 1].out[0].index];
  if (kind == op_kind::map_gradient)
    return ops[i - 1].kind == op_kind::matmul_input_gradient && continues(i) && read_here_only;
  bool const has_bias = ops[i - 1].kind == op_kind::bias && i > 1;
  return ops[has_bias ? i - 2 : i - 1].kind == op_kind::matmul && continues(i) &&
         (!has_bias || continues(i - 1)) && (kind == op_kind::map || read_here_only);
}

/// Whether an op joins the matmul that is op `at` of `count`.
constexpr bool is_joined(op const* ops, int at, int count, bool const* read_once) {
  return (at + 1 < count && joins_product(ops, at + 1, read_once)) ||
         (at + 2 < count && ops[at + 1].kind == op_kind::bias &&
          joins_product(ops, at + 2, read_once));
}

/// Marks the values that a model reads once, forward and backward.
///
/// shape: reads[values], initially 0: working memory -> read_once[values]
constexpr void find_read_once(view<op> forward, view<op> input_gradients, view<op> weight_gradients,
                              int values, int* reads, bool* read_once) {
  for (view<op> const& ops : {forward, input_gradients, weight_gradients})
    for (int i = 0; i < ops.count; ++i)
      for (int k = 0; k < ops.items[i].ins; ++k)
        if (operand const x = ops.items[i].in[k]; x.where == space::value) ++reads[x.index];
  for (int v = 0; v < values; ++v) read_once[v] = reads[v] == 1;
}

}  // namespace pp::detail
