// error: op_kind_without::gradient_rule|must be initialized by a constant expression|expression must have a constant value
// says: non-.?constexpr.? function .*gradient_rule
// SPDX-License-Identifier: BSL-1.0
//
// A kind without a gradient rule.
#include <pipe/graph/op_kind.hpp>  // first, so that a message shows the shortest way to it

#include <pipe/graph/gradient_graph.hpp>
#include <pipe/graph/layers.hpp>

#include "new_op_kind.hpp"  // PIPE_EXPECT_OK: softmax

constexpr auto one_op() {
  pp::detail::graph<pp::detail::graph_size{.ops = 1, .values = 1}> g{};
  g.ops[0].kind = kind;
  g.ops[0].ins = 1;
  g.ops[0].in[0] = pp::detail::operand{pp::detail::space::input, 0};
  g.ops[0].out[0] = pp::detail::value_operand(0);
  return g;
}
constexpr auto forward = one_op();
constexpr int operations() {
  pp::detail::gradient_scratch_of<forward.size> scratch;
  pp::detail::gradient_sinks counts;
  pp::detail::differentiator(forward, scratch, counts).run();
  return counts.sizes().input_ops;
}
constexpr int made = operations();
