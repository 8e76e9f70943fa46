// SPDX-License-Identifier: BSL-1.0
//
// The time in which an exchange of gradients is hidden.
#include "catch.hpp"

#include <pipe/schedule.hpp>
#include <pipe/schedule/drain.hpp>

namespace {

using namespace pp;
using namespace pp::schedules;

constexpr chunk_cost cost{.forward = 3, .backward_input = 4, .backward_weight = 2};

/// Calls see(rank, its window) for the ranks of pipelines of several sizes.
template <class Schedule, class See>
void for_each_window(See see) {
  for (int ranks : {1, 2, 4, 7}) {
    auto const problem = equal_times(ranks, 2 * ranks, cost);
    auto const table = make_dynamic_table<Schedule>(problem);
    auto const when = simulate(problem, table);
    for (int r = 0; r < ranks; ++r) see(r, window_of(table, when, r));
  }
}

}  // namespace

TEST_CASE("the window of an exchange opens rank by rank", "[drain]") {
  // The first forward reaches rank r after r of them, the last gradient rank 0 after r backwards.
  auto const see = [](int r, exchange_window const& w) {
    CHECK(w.fill == 3 * r);
    CHECK(w.drain == 6 * r);
  };
  for_each_window<OneFOneB>(see);
  for_each_window<GPipe>(see);
}
TEST_CASE("gradients of weights that are late close it", "[drain]") {
  for_each_window<ZeroBubbleH1>([](int r, exchange_window const& w) {
    CHECK(w.fill == 3 * r);
    CHECK(w.drain <= 4 * r);
  });
}
TEST_CASE("a rank without gradients has all of the step", "[drain]") {
  using enum action_kind;
  auto const problem = equal_times(1, 1, cost);
  dynamic_table table(1);
  auto const none = simulate(problem, table);
  CHECK(window_of(table, none, 0).drain == none.makespan);
  table.push(0, {forward, 0, 0});
  auto const when = simulate(problem, table);
  CHECK(window_of(table, when, 0).drain == 3);
  CHECK(window_of(table, when, 0).fill == 0);
  CHECK_THROWS_AS(window_of(table, when, 1), error);
}
