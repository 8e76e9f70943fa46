// SPDX-License-Identifier: BSL-1.0
//
// A memory limit in bytes is the limit of a schedule that limits memory: at compile time, where the
// program makes the schedule, and in Planned.
#include "catch.hpp"

#include <pipe/pipe.hpp>
#include <pipe/plan/compiled/planned.hpp>

using namespace pp;

namespace {

template <class Plan>
constexpr long fullest_rank(Plan const& p) {
  long most = 0;
  for (long const bytes : p.rank_bytes) most = bytes > most ? bytes : most;
  return most;
}

struct Deep : Model<Input<64>, Repeat<12, Seq<Linear<64>, Tanh>>, Linear<64>, MSE> {};

template <int MicroBatches_, class Schedule, class... Options>
using deep = Pipeline<Deep, Stages<4>, MicroBatches<MicroBatches_>, MicroBatchSize<256>, Schedule,
                      SGD, PortableHost, Options...>;
template <int MicroBatches_, class Schedule, class... Options>
using planned = Planned<Deep, Stages<4>, MicroBatches<MicroBatches_>, MicroBatchSize<256>, Schedule,
                        SGD, PortableHost, Options...>;

// Searched orders of 12 micro-batches are constants, those of 96 are made by the program.
constexpr auto const& unlimited = deep<12, Searched<>>::plan;
constexpr auto const& narrow = deep<12, Searched<1, 4>>::plan;
constexpr long between = (fullest_rank(deep<12, ZeroBubble1P>::plan) + fullest_rank(narrow)) / 2;
template <int N>
using limited = deep<N, Searched<>, MemoryLimit<between>>;
static_assert(fullest_rank(unlimited) > between && fullest_rank(limited<12>::plan) <= between);

}  // namespace

TEST_CASE("a search has as much in flight as the memory limit allows") {
  auto const& plan = limited<12>::plan;
  CHECK(plan.bubble > unlimited.bubble);
  CHECK(plan.bubble < narrow.bubble);
  // Each rank has a limit of its own, in the unit of the problem: less than all its bytes.
  auto const& problem = limited<12>::compiled::times();
  for (int rank = 0; rank < 4; ++rank) {
    CHECK(schedules::peak_memory(problem, limited<12>::compiled::table(), rank) <=
          problem.room(rank));
    CHECK(problem.room(rank) < between);
    CHECK(plan.rank_bytes[rank] <= between);
  }
  CHECK(problem.room(0) != problem.room(3));
}
TEST_CASE("the limit is the same of a schedule that the program makes, and of a plan") {
  auto const &made = limited<96>::plan(),
             &plan = planned<96, Searched<>, MemoryLimit<between>>::plan();
  CHECK(fullest_rank(made) <= between);
  CHECK(fullest_rank(planned<96, Searched<>>::plan()) > between);
  CHECK(made.bubble < planned<96, Searched<1, 4>>::plan().bubble);
  CHECK(made.gap == plan.gap);
  CHECK(made.bubble == plan.bubble);
  for (int rank = 0; rank < 4; ++rank) CHECK(made.rank_bytes[rank] == plan.rank_bytes[rank]);
}
TEST_CASE("schedules of any family that limits memory are limited, in steps that overlap, too") {
  long const bytes = fullest_rank(planned<12, OneFOneB>::plan()), limit = between;
  REQUIRE(bytes > limit);
  CHECK(fullest_rank(planned<12, AdaptedOneFOneB, MemoryLimit<between>>::plan()) <= limit);
  REQUIRE(fullest_rank(planned<12, Steady<Searched<>>>::plan()) > limit);
  CHECK(fullest_rank(planned<12, Steady<Searched<>>, MemoryLimit<between>>::plan()) <= limit);
}
TEST_CASE("a limit that no order fits is said with the order that needs least") {
  CHECK_THROWS_WITH((planned<96, Searched<>, MemoryLimit<400'000>>::plan()),
                    Catch::Contains("more than the limit of 400000"));
}
