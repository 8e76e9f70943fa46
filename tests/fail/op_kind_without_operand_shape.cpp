// error: op_kind_without::operand_shape|must be initialized by a constant expression|expression must have a constant value
// says: non-.?constexpr.? function .*operand_shape
// SPDX-License-Identifier: BSL-1.0
//
// A kind without a case in shape_of_operand.
#include <pipe/graph/layers.hpp>
#include <pipe/graph/operand_shape.hpp>

#include "new_op_kind.hpp"  // PIPE_EXPECT_OK: softmax

constexpr pp::detail::op read() {
  pp::detail::op o{};
  o.kind = kind;
  o.rows = o.columns = 16;
  return o;
}
constexpr pp::detail::operand_shape needed = pp::detail::shape_of_operand(read(), 0);
