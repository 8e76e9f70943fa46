// SPDX-License-Identifier: BSL-1.0
//
// When a program is started again, and how often it should save.
#include "catch.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include <pipe/checkpoint/failure_rate.hpp>

#include "restart_budget.hpp"

using launcher::next_start;
using launcher::restart_budget;

namespace {

bool is(std::optional<next_start> const& found, int processes, double wait, int number) {
  return found && found->processes == processes && found->wait == wait && found->number == number;
}

constexpr bool about(double found, double expected, double error) {
  return found > expected - error && found < expected + error;
}
// 0.27 % a day, of 512 and of 1,024 machines.
static_assert(about(pp::chance_of_failure(0.0027, 512), 0.749, 0.0005));
static_assert(about(pp::chance_of_failure(0.0027, 1024), 0.937, 0.0005));
static_assert(pp::chance_of_failure(0.0027, 0) == 0);
static_assert(about(pp::chance_of_failure(0.0027, 1), 0.0027, 1e-15));
static_assert(pp::chance_of_failure(1, 3) == 1);

// Minutes: a checkpoint takes 5, a failure comes once a day. Young's formula is 120.
static_assert(about(pp::checkpoint_interval(5, 1440), 120 - 3.3, 0.05));
static_assert(pp::checkpoint_interval(20, 10) == 10);
static_assert(pp::checkpoint_interval(21, 10) == 10);

}  // namespace

TEST_CASE("the mean time between failures has the chance of a failure", "[pipe_run]") {
  for (double const p : {1e-9, 0.0027, 0.1, 0.5, 0.99})
    for (long const machines : {1L, 7L, 512L}) {
      double const mean = pp::time_between_failures(p, 24, machines);
      double const chance = -std::expm1(-24 / mean);
      CHECK(chance == Approx(pp::chance_of_failure(p, machines)).epsilon(1e-6));
    }
}

TEST_CASE("no other interval between checkpoints loses less time", "[pipe_run]") {
  // source: Daly, 2006, equation 20: the time of a run over its time without failures and
  // checkpoints, with restarts that take no time.
  auto const cost = [](double interval, double save, double between) {
    return between * std::expm1((interval + save) / between) / interval;
  };
  for (double const save : {1.0, 30.0, 600.0})
    for (double const between : {2 * save, 20 * save, 1000 * save}) {
      double const best = pp::checkpoint_interval(save, between);
      double least = cost(best, save, between);
      for (double other = best / 8; other < best * 8; other *= 1.01)
        least = std::min(least, cost(other, save, between));
      CHECK(cost(best, save, between) < least * 1.002);
    }
}

TEST_CASE("restarts are counted within a window, and their waits double", "[pipe_run]") {
  restart_budget budget({4}, 3, 100, 1);
  CHECK(is(budget.after_failure(10), 4, 1, 1));
  CHECK(is(budget.after_failure(20), 4, 2, 2));
  CHECK(is(budget.after_failure(30), 4, 4, 3));
  CHECK_FALSE(budget.after_failure(40));
  CHECK_FALSE(budget.after_failure(109));
  CHECK(is(budget.after_failure(110), 4, 4, 3));  // the first one counts no longer
  CHECK_FALSE(budget.after_failure(119));
  CHECK(is(budget.after_failure(300), 4, 1, 1));

  restart_budget endless({1}, 20, 0, 1);
  for (int i = 1; i <= 20; ++i)
    CHECK(is(endless.after_failure(1e6 * i), 1, i < 7 ? std::pow(2, i - 1) : 60, i));
  CHECK_FALSE(endless.after_failure(1e9));
}

TEST_CASE("fewer processes follow when no restart is left", "[pipe_run]") {
  restart_budget budget({8, 4, 1}, 1, 100, 0);
  CHECK(is(budget.after_failure(1), 8, 0, 1));
  CHECK(is(budget.after_failure(2), 4, 0, 0));
  CHECK(is(budget.after_failure(3), 4, 0, 1));
  CHECK(is(budget.after_failure(4), 1, 0, 0));
  CHECK(is(budget.after_failure(5), 1, 0, 1));
  CHECK_FALSE(budget.after_failure(6));

  restart_budget none({2, 1}, 0, 100, 1);
  CHECK(is(none.after_failure(1), 1, 1, 0));
  CHECK_FALSE(none.after_failure(2));
}
