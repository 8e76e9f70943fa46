// SPDX-License-Identifier: BSL-1.0
//
// Small problems, of which all orders are tried: against the exact optima of another program; and
// the times of orders that change move by move.
#include "catch.hpp"

#include <pipe/schedule/dynamic_table.hpp>
#include <pipe/schedule/search/search.hpp>
#include <pipe/schedule/search/search_moves.hpp>

#include "optima.hpp"
#include "reference.hpp"

namespace {

using namespace pp;
using namespace pp::schedules;
using namespace pp::detail;
using reference::dice;
using reference::many_costs;
using reference::solved;

/// Whether searches are for the placement, and micro-batches free what they take.
bool is_searched(solved const& s) {
  if (replicas(s.where) > 1) return false;
  for (chunk_cost const& c : s.problem.costs)
    if (c.memory.forward + c.memory.backward_input + c.memory.backward_weight != 0) return false;
  return true;
}

/// Searches each `every`-th problem whose micro-batches free what they take.
void require_optima(int every, objective want) {
  std::vector<solved> const all = reference::read_optima();
  int found = 0;
  for (std::size_t i = 0; i < all.size(); i += static_cast<std::size_t>(every)) {
    auto const& [problem, where, best] = all[i];
    if (!is_searched(all[i])) continue;
    INFO("problem " << i);
    dynamic_table table(problem.ranks, where);
    search(problem, table, search_options{want});
    REQUIRE(validate(problem, table).ok());
    auto const when = simulate(problem, table);
    if (want == objective::makespan)
      CHECK(when.makespan == best.makespan);
    else
      CHECK(when.stage_local_span() == best.stage_local_span);
    ++found;
  }
  REQUIRE(found * every > 400);
}
TEST_CASE("small problems have the shortest span of all orders", "[search]") {
  require_optima(8, objective::stage_local_span);
}
TEST_CASE("all small problems have the shortest span and makespan", "[search][long]") {
  require_optima(1, objective::stage_local_span);
  require_optima(1, objective::makespan);
}

TEST_CASE("a proof needs all beginnings, an improvement only some", "[search]") {
  int proved = 0, cut = 0, better = 0;
  std::vector<solved> const all = reference::read_optima();
  for (std::size_t i = 0; i < all.size(); i += 3) {
    solved const& s = all[i];
    if (!is_searched(s)) continue;
    INFO("problem " << i);
    search_problem const question(s.problem, s.where, objective::makespan);
    search_actions const actions(question);
    planner const plans(question);
    search_openings openings(plans, actions);
    openings.try_usual(1, 0);
    search_order order(actions);
    for (int width : {1, 400}) {
      order.assign(openings.best());
      bool const is_best = exhaustive_search(actions, width).improve(order);
      REQUIRE(order.fits());
      long const found = order_times(actions).play(order).worst;
      REQUIRE(found <= openings.best_score().worst);
      REQUIRE(found >= s.best.makespan);
      better += found < openings.best_score().worst;
      if (is_best) CHECK(found == s.best.makespan);
      (is_best ? proved : cut) += 1;
    }
  }
  CHECK(proved > 2 * cut);
  CHECK(cut > 0);
  CHECK(better > 30);
}

TEST_CASE("where micro-batches leave no memory, there is no order", "[search]") {
  auto problem = equal_times(2, 5, {5, 3, 3, {4, -2, -1}});
  problem.limit = 4;
  dynamic_table table(2);
  search(problem, table);
  CHECK(table.size(0) == 0);
  problem.limit = 8;
  search(problem, table);
  CHECK(validate(problem, table).ok());
}

TEST_CASE("an order that changes has the times of one that is timed anew", "[search]") {
  dice roll(25);
  int kept = 0, taken_back = 0, deadlocks = 0;
  for (placement where : {placement::straight, placement::vee, placement::loop})
    for (int i = 0; i < 20; ++i) {
      auto const problem = reference::random_problem(roll, where, 4, 5, 0);
      auto const table = reference::random_table(roll, problem, where, reference::style::split);
      auto const want = roll(0, 1) ? objective::makespan : objective::stage_local_span;
      search_problem const question(problem, where, want);
      search_actions const actions(question);
      search_order order(actions);
      for (int rank = 0; rank < problem.ranks; ++rank)
        for (action const& a : table.row(rank)) order.push(rank, a);
      moved_order moved(actions);
      REQUIRE(moved.start(order) == order_times(actions).play(order));
      for (int step = 0; step < 100; ++step) {
        int const rank = roll(0, problem.ranks - 1), last = actions.length - 1;
        moved_order::move const m{rank, roll(0, last), roll(0, last)};
        int const x = moved.row(rank)[m.from];
        bool may = m.from != m.to;
        for (int at = m.low(); at <= m.high(); ++at) {
          int const y = moved.row(rank)[at];
          may &= y == x || (y / actions.micro_batches != x / actions.micro_batches &&
                            x + actions.of(x).input != y && y + actions.of(y).input != x);
        }
        if (!may) continue;
        order.assign(moved.order());
        score const before = moved.value();
        if (moved.try_move(m) == 0) {
          ++deadlocks;
        } else if (order_times times(actions); roll(0, 1)) {
          REQUIRE(moved.value() == times.play(moved.order()));
          moved.keep();
          moved_order anew(actions);
          anew.start(moved.order());
          for (int y = 0; y < actions.count; ++y) {
            REQUIRE(moved.end(y) == times.end.item[y]);
            REQUIRE(moved.rest(y) == anew.rest(y));
          }
          ++kept;
          continue;
        } else {
          REQUIRE(moved.value() == times.play(moved.order()));
          moved.take_back();
          ++taken_back;
        }
        REQUIRE(moved.value() == before);
        for (int k = 0; k < problem.ranks; ++k)
          REQUIRE(std::equal(order.row(k), order.row(k) + actions.length, moved.row(k)));
      }
    }
  CHECK(kept > 200);
  CHECK(taken_back > 200);
  CHECK(deadlocks > 20);
}

}  // namespace
