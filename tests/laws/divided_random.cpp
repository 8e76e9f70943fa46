// SPDX-License-Identifier: BSL-1.0
//
// The law of division for random graphs whose ops read their operands as random types:
// PIPE_GRAPHS of them, or a few hundred.
#include "catch.hpp"

#include <cstdlib>

#include "laws/drawn_graph.hpp"

TEST_CASE("planes of random graphs have the gradients of the whole graph", "[division]") {
  char const* const many = std::getenv("PIPE_GRAPHS");
  int const graphs = many != nullptr ? std::atoi(many) : 200;
  int exchanges = 0;
  for (int i = 1; i <= graphs; ++i) {
    laws::number const seed = laws::number(i);
    laws::drawn_graph const g(seed);
    laws::field_result const whole = laws::run_in_field(g, 1, seed);
    int const planes = 2 << i % 3;
    INFO("graph " << i << " on " << planes << " planes");
    pp::detail::heap_division const d(g, planes, i % 4 == 0 ? nullptr : g.readings());
    pp::detail::division_view const divided = d;
    for (pp::detail::op const& o : divided.local.ops) exchanges += o.kind == pp::op_kind::exchange;
    laws::field_result const parts = laws::field_run(d, seed).result(g);
    CHECK((parts.logits == whole.logits));
    CHECK((parts.gradients == whole.gradients));
    CHECK(parts.disagreements == 0);
  }
  CHECK(exchanges > 3 * graphs);
}
