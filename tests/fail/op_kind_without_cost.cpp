// error: op_kind_without::cost|must be initialized by a constant expression|expression must have a constant value
// says: non-.?constexpr.? function .*cost
// SPDX-License-Identifier: BSL-1.0
//
// A kind without a case in cost_of.
#include <pipe/graph/cost.hpp>
#include <pipe/graph/layers.hpp>

#include "new_op_kind.hpp"  // PIPE_EXPECT_OK: softmax

constexpr pp::detail::op work() {
  pp::detail::op o{};
  o.kind = kind;
  o.rows = o.columns = 16;
  return o;
}
constexpr pp::detail::cost needed = pp::detail::cost_of(work());
