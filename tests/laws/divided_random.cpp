// SPDX-License-Identifier: BSL-1.0
//
// The law of division for random graphs whose ops read their operands as random types:
// PIPE_GRAPHS of them, or a thousand.
#include "catch.hpp"

#include <cstdlib>
#include <map>
#include <string>

#include "laws/drawn_graph.hpp"

TEST_CASE("planes of random graphs have the gradients of the whole graph", "[division]") {
  char const* const many = std::getenv("PIPE_GRAPHS");
  int const graphs = many != nullptr ? std::atoi(many) : 1000;
  // The numbers of ops with a result of each type, by kind.
  std::map<std::string, std::map<pp::detail::division_type, int>> results;
  for (int i = 1; i <= graphs; ++i) {
    laws::number const seed = laws::number(i);
    laws::drawn_graph const g(seed);
    laws::field_result const whole = laws::run_in_field(g, 1, seed);
    int const planes = 2 << i % 3;
    INFO("graph " << i << " on " << planes << " planes");
    pp::detail::heap_division const d(g, planes, i % 4 == 0 ? nullptr : g.readings());
    pp::detail::division_view const divided = d;
    for (pp::detail::op const& o : divided.local.ops)
      ++results[pp::detail::name_of(o.kind)][divided.values[o.out[0].index].where];
    laws::field_result const parts = laws::field_run(d, seed).outcome(g);
    CHECK((parts.logits == whole.logits));
    CHECK((parts.gradients == whole.gradients));
    CHECK(parts.disagreements == 0);
  }
  using type = pp::detail::division_type;
  for (auto const& [kind, found] : results) {
    INFO(kind);
    if (kind == "lookup") CHECK(found.count(type::partial) == 1);
    if (kind != "lookup") CHECK(found.count(type::divided) == 1);
    if (kind != "cross_entropy_statistics") CHECK(found.count(type::whole) == 1);
  }
  CHECK(results["matmul"].count(type::partial) == 1);
  CHECK(results["row_dot"].count(type::partial) == 1);
  CHECK(results["exchange"][type::divided] > graphs);
}
