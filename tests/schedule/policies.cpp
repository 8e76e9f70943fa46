// SPDX-License-Identifier: BSL-1.0
//
// What each schedule family promises, for all sizes, fewer micro-batches than ranks included.
#include "catch.hpp"

#include <algorithm>

#include "reference.hpp"
#include "same_slots.hpp"

namespace user {

using namespace pp;
using namespace pp::schedules;

/// Ten lines that a user may write: 1F1B that keeps one more micro-batch in flight.
// [user_policy]
struct OneMore {
  static constexpr char const* name = "one-more";
  static constexpr placement where = placement::straight;
  static constexpr int chunks_per_rank = 1;
  static constexpr bool splits_backward = false, trains = true;

  static constexpr void fill(auto const& problem, auto& table) {
    for (int rank = 0, m = problem.micro_batches; rank < problem.ranks; ++rank)
      for (int tick = 0, ahead = problem.ranks - rank; tick < m + ahead; ++tick) {
        if (tick < m) table.push(rank, {action_kind::forward, rank, tick});
        if (tick >= ahead) table.push(rank, {action_kind::backward, rank, tick - ahead});
      }
  }
};
static_assert(validate(equal_times(4, 8), make_table<OneMore, 4, 8>()).ok());
// [/user_policy]

}  // namespace user

namespace {

using namespace pp;
using namespace pp::detail;
using reference::dice;
using reference::many_costs;
using user::OneMore;

static_assert(schedule_policy<GPipe> && schedule_policy<OneFOneB> && schedule_policy<ForwardOnly>);
static_assert(schedule_policy<OneMore> && !schedule_policy<int>);

// Proofs inside the compiler, within its default limits; m < p too.
constexpr auto large = equal_times(16, 128, {10, 10, 10});
constexpr auto large_table = make_table<OneFOneB, 16, 128>(large);
static_assert(validate(large, large_table).ok());
constexpr auto large_timeline = simulate(large, large_table);
static_assert(large_timeline.complete && large_timeline.makespan == (128 + 16 - 1) * 30);
static_assert(large_timeline.busy(7) == 128 * 30 && large_timeline.idle(7) == 15 * 30);
/// B of the last chunk comes directly after its F where a rank alternates, from its first F on.
static_assert(is_backward_next(make_table<OneFOneB, 4, 8>(), 3, 3));
static_assert(!is_backward_next(make_table<OneFOneB, 4, 8>(), 2, 2));
static_assert(!is_backward_next(make_table<GPipe, 4, 8>(), 3, 3));
static_assert(is_backward_next(make_table<GPipe, 4, 1>(), 3, 3));
static_assert(!is_backward_next(make_table<ZeroBubbleH1, 4, 8>(), 3,
                                3));  // B and W apart
static_assert(peak_in_flight(large_table, 0) == 16 && peak_in_flight(large_table, 15) == 1);
constexpr auto large_slots = same_slots{{16, 2}};
static_assert(boundary_slots(large, large_table, large_timeline, 0) == large_slots.each);
static_assert(check_progress(large, large_table, large_slots).ok());

static_assert(validate(equal_times(8, 3), make_table<OneFOneB, 8, 3>()).ok());
static_assert(validate(equal_times(8, 32), make_table<GPipe, 8, 32>()).ok());
static_assert(validate(equal_times(8, 32), make_table<ForwardOnly, 8, 32>()).ok());

constexpr auto uneven = unequal_times(3, 5, {{4, 5, 2}, {9, 7, 7}, {1, 1, 0}}, 2);
constexpr auto uneven_table = make_table<OneFOneB, 3, 5>(uneven);
static_assert(validate(uneven, uneven_table).ok());
static_assert(simulate(uneven, uneven_table).makespan >= floor_of(uneven).makespan);

template <class Policy>
many_costs with_costs(problem<> const& p) {
  return many_costs{p.ranks, p.chunks, p.micro_batches, p.hop,
                    std::vector<chunk_cost>(static_cast<std::size_t>(p.chunks), p.costs.each)};
}

TEMPLATE_TEST_CASE("a policy is right for every number of ranks and micro-batches", "[policy]",
                   GPipe, OneFOneB, ForwardOnly, OneMore) {
  for (int p = 1; p <= 8; ++p)
    for (int m = 1; m <= 12; ++m) {
      auto const problem = equal_times(p, m, {3, 2, 4});
      auto const table = make_dynamic_table<TestType>(problem);
      INFO("p " << p << ", m " << m << ": " << validate(problem, table).text());
      REQUIRE(validate(problem, table).ok());
      REQUIRE(reference::is_right(with_costs<TestType>(problem), table));
      for (int rank = 0; rank < p; ++rank)
        REQUIRE(table.size(rank) == actions_per_rank<TestType>(m));
    }
}

TEMPLATE_TEST_CASE("a policy is right, and not faster than the floors, at any times", "[policy]",
                   GPipe, OneFOneB, ForwardOnly, OneMore) {
  dice roll(7);
  for (int i = 0; i < 1500; ++i) {
    auto const problem = reference::random_problem(roll, placement::straight, 8, 12, 0);
    auto const table = make_dynamic_table<TestType>(problem);
    REQUIRE(validate(problem, table).ok());
    auto const when = simulate(problem, table);
    auto const check = reference::run(problem, table);
    REQUIRE(when.complete);
    REQUIRE(check.finished);
    REQUIRE(when.makespan == check.makespan);
    if (!TestType::trains) continue;
    REQUIRE(when.makespan >= floor_of(problem).makespan);
    REQUIRE(when.stage_local_span() >= floor_of(problem).stage_local_span);
  }
}

TEST_CASE("closed forms of GPipe and 1F1B", "[policy]") {
  for (int p = 1; p <= 8; ++p)
    for (int m = 1; m <= 12; ++m)
      for (chunk_cost const& cost :
           {chunk_cost{1, 1, 0}, chunk_cost{3, 2, 4}, chunk_cost{5, 0, 1}, chunk_cost{1, 7, 7}})
        for (long hop : {0L, 3L}) {
          INFO("p " << p << ", m " << m << ", hop " << hop);
          auto const problem = equal_times(p, m, cost, hop);
          long const work = cost.forward + cost.backward_input + cost.backward_weight;
          auto const gpipe = make_dynamic_table<GPipe>(problem),
                     one = make_dynamic_table<OneFOneB>(problem);
          auto const gpipe_when = simulate(problem, gpipe), one_when = simulate(problem, one);

          REQUIRE(gpipe_when.makespan == (m + p - 1) * work + 2 * (p - 1) * hop);
          for (int rank = 0; rank < p; ++rank) {
            REQUIRE(peak_in_flight(gpipe, rank) == m);
            REQUIRE(peak_in_flight(one, rank) == std::min(m, p - rank));
            REQUIRE(one_when.busy(rank) == m * work);
          }
          if (hop > 0) continue;
          REQUIRE(one_when.makespan == (m + p - 1) * work);
          for (int rank = 0; rank < p; ++rank) REQUIRE(one_when.idle(rank) == (p - 1) * work);
          auto const bubble = Approx((p - 1.0) / (m + p - 1)).margin(1e-12);
          REQUIRE(one_when.bubble_by_makespan() == bubble);
          REQUIRE(gpipe_when.bubble_by_makespan() == bubble);
          REQUIRE(one_when.stage_local_span() == one_when.makespan);  // rank 0 spans it all
        }
}

TEST_CASE("closed forms of forward only", "[policy]") {
  for (int p = 1; p <= 8; ++p)
    for (int m = 1; m <= 12; ++m) {
      auto const problem = equal_times(p, m, {3, 2, 4, {10, -5, -5}}, 2);
      auto const table = make_dynamic_table<ForwardOnly>(problem);
      auto const when = simulate(problem, table);
      REQUIRE(when.makespan == (m + p - 1) * 3 + (p - 1) * 2);
      REQUIRE(when.stage_local_span() == 3 * m);
      REQUIRE(when.bubble_by_stage_local_span() == Approx(0).margin(1e-12));
      for (int rank = 0; rank < p; ++rank) {
        REQUIRE(peak_in_flight(table, rank) == 1);
        REQUIRE(peak_memory(problem, table, rank) == 10);
      }
    }
}

TEST_CASE("floors at equal times are the published ones", "[floors]") {
  for (int p = 1; p <= 8; ++p)
    for (int m = 1; m <= 40; ++m)
      for (long tw : {0L, 1L, 9L}) {
        long const tf = 3, tb = 4, tc = 2, work = tf + tb + tw;
        auto const problem = equal_times(p, m, {tf, tb, tw}, tc);
        long const there_and_back = (p - 1) * (tf + tb + 2 * tc) + m * (tf + tb) + tw;
        long const makespan = std::max((p - 1) * (tf + tc) + m * work, there_and_back),
                   idle = std::max(0L, (p - 1) * (tf + tb + 2 * tc) - (m - 1) * tw);
        flush_floor const floor = floor_of(problem);
        REQUIRE(floor.makespan >= makespan);
        REQUIRE(floor.stage_local_span - m * work >= idle);
        if (m < 4 * p) continue;  // few micro-batches: a rank waits, and has no other work
        REQUIRE(floor.makespan == makespan);
        REQUIRE(floor.stage_local_span - m * work == idle);
      }
}

TEST_CASE("floors hold for any schedule of one chunk per rank", "[floors]") {
  dice roll(11);
  for (int i = 0; i < 1500; ++i) {
    auto const problem = reference::random_problem(roll, placement::straight, 5, 6, 0);
    auto const how = roll(0, 1) ? reference::style::whole : reference::style::split;
    auto const when =
        simulate(problem, reference::random_table(roll, problem, placement::straight, how));
    REQUIRE(when.makespan >= floor_of(problem).makespan);
    REQUIRE(when.stage_local_span() >= floor_of(problem).stage_local_span);
  }
}

TEST_CASE("the same table at compile time and at run time", "[policy]") {
  auto const table = make_dynamic_table<OneFOneB>(large);
  for (int rank = 0; rank < 16; ++rank) {
    REQUIRE(table.size(rank) == large_table.size(rank));
    for (int i = 0; i < table.size(rank); ++i)
      REQUIRE(table.at(rank, i) == large_table.at(rank, i));
  }
  REQUIRE(simulate(large, table).makespan == large_timeline.makespan);
}

}  // namespace
