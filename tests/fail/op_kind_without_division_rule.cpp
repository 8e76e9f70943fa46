// error: op_kind_without::division_rule|must be initialized by a constant expression|expression must have a constant value
// says: non-.?constexpr.? function .*division_rule
// lines: 40
// SPDX-License-Identifier: BSL-1.0
//
// A kind without a rule in passes/division_rules.hpp.
#include <pipe/graph/layers.hpp>
#include <pipe/passes/divide.hpp>

#include "new_op_kind.hpp"  // PIPE_EXPECT_OK: softmax

/// A graph of one op.
constexpr pp::detail::graph<pp::detail::graph_size{1, 1, 0, 1, 1}> lone() {
  pp::detail::graph<pp::detail::graph_size{1, 1, 0, 1, 1}> g{};
  pp::detail::op& o = g.ops[0];
  o.kind = kind;
  o.rows = o.columns = 16;
  o.ins = 1;
  o.in[0].where = pp::detail::space::input;
  o.out[0].where = pp::detail::space::value;
  g.values[0].elements = 256;
  g.units[1].first_op = g.units[1].first_value = 1;
  return g;
}
constexpr auto whole = lone();
constexpr pp::detail::graph_size needed = pp::detail::count_division(whole, 2);
