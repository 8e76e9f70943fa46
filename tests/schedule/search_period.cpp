// SPDX-License-Identifier: BSL-1.0
//
// Searches for steps that overlap: the period of their orders against that of orders by the span.
#include "catch.hpp"

#include <type_traits>

#include <pipe/schedule/families/steady.hpp>
#include <pipe/schedule/search/search.hpp>

#include "reference.hpp"

namespace {

using namespace pp;
using namespace pp::schedules;
using namespace pp::detail;
using reference::dice;
using reference::many_costs;

/// Two to six ranks, unequal times, and four fifths to nine fifths of the memory of 1F1B.
many_costs random_problem(dice& roll, placement where) {
  many_costs problem;
  problem.ranks = roll(2, 6);
  problem.chunks = problem.ranks * (where == placement::vee ? 2 : 1);
  problem.micro_batches = problem.ranks * roll(1, 3);
  problem.hop = roll(0, 3);
  for (int chunk = 0; chunk < problem.chunks; ++chunk)
    problem.costs.push_back({roll(1, 12), roll(1, 12), roll(1, 12), {3, -1, -2}});
  problem.limit = memory_of_1f1b(problem, where) * roll(8, 18) / 10;
  return problem;
}

template <placement Where>
using Quick = Searched<0, 1, Where, objective::stage_local_span, 500'000>;

/// Searches for the span and for the period; counts problems whose period became shorter.
template <placement Where>
void search_both(int problems, int& better) {
  auto roll = dice(23);
  for (int i = 0; i < problems; ++i) {
    auto const problem = random_problem(roll, Where);
    INFO("problem " << i << ", " << problem.ranks << " ranks");
    REQUIRE(Quick<Where>::refuses(problem) == nullptr);
    auto const by_span = make_dynamic_table<Quick<Where>>(problem);
    auto const by_period = make_dynamic_table<flushed_of<Steady<Quick<Where>>>>(problem);
    REQUIRE(validate(problem, by_period).ok());
    step_period const before = period_of(problem, by_span), after = period_of(problem, by_period);
    CHECK(!(before < after));
    better += after < before;
  }
}

struct OwnOrder : Searched<> {  // of a family that sets its own limit
  static constexpr void fill(auto const& problem, auto& table) { Searched<>::fill(problem, table); }
};

TEST_CASE("orders for steps that overlap have no longer period than those by the span",
          "[search]") {
  int better = 0;
  search_both<placement::straight>(60, better);
  search_both<placement::vee>(60, better);
  CHECK(better >= 5);
}

// Which family is asked for the period.
static_assert(std::is_same_v<flushed_of<Steady<OneFOneB>>, OneFOneB>);
static_assert(std::is_same_v<flushed_of<Steady<OwnOrder>>, OwnOrder>);
static_assert(!std::is_same_v<flushed_of<Steady<ZeroBubble1P>>, ZeroBubble1P>);

// In a constant, the order is that by the span.
constexpr auto question = equal_times(3, 4, {3, 2, 4}, 1);
static_assert(period_of(question, make_table<flushed_of<Steady<Searched<>>>, 3, 4>(question)) ==
              period_of(question, make_table<Searched<>, 3, 4>(question)));
static_assert(step_period{5, 2} < step_period{8, 3} && !(step_period{8, 3} < step_period{5, 2}));

}  // namespace
