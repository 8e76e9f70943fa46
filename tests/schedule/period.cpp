// SPDX-License-Identifier: BSL-1.0
//
// Steps without a barrier: their period, against simulated runs of many steps.
#include "catch.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include <pipe/schedule/families/repeated.hpp>
#include <pipe/schedule/period.hpp>
#include <pipe/schedule/stage_ranks.hpp>

#include "reference.hpp"

namespace {

using namespace pp;
using namespace pp::schedules;
using namespace pp::detail;
using reference::dice;

/// The end of each step of a run: when all ranks are done with it.
template <class Table, class Slots = unbounded_slots>
std::vector<long> ends_of_steps(run_time_problem const& problem, Table const& table, int steps,
                                Slots const& slots = {}) {
  auto const run = repeated(problem, table, steps);
  auto const when = simulate(repeated(problem, steps), run, slots);
  REQUIRE(when.complete);
  std::vector<long> ends(std::size_t(steps), 0);
  for (int rank = 0; rank < run.ranks(); ++rank)
    for (int i = 0; i < run.size(rank); ++i) {
      long& end = ends[std::size_t(run.at(rank, i).micro_batch / problem.micro_batches)];
      end = std::max(end, when.spans.at(rank, i).end);
    }
  return ends;
}

/// The pace of the second half of a run of 120 steps is the period.
template <class Table, class Slots = unbounded_slots>
void require_pace(run_time_problem const& problem, Table const& table, Slots const& slots = {}) {
  step_period const period = period_of(problem, table, slots);
  auto const ends = ends_of_steps(problem, table, 120, slots);
  REQUIRE(60 % period.steps == 0);
  REQUIRE(ends[119] - ends[59] == 60 / period.steps * period.time);
}

/// The slots of each boundary that one step needs.
std::vector<slot_count> slots_of(run_time_problem const& problem, dynamic_table const& table) {
  auto const when = simulate(problem, table);
  std::vector<slot_count> slots;
  for (int c = 0; c + 1 < problem.chunks; ++c)
    slots.push_back(boundary_slots(problem, table, when, c));
  return slots;
}

run_time_problem problem_for(family const& f, int ranks, int micro_batches, chunk_cost const& stage,
                             long hop) {
  int const held = f.chunks_per_rank > 0 ? f.chunks_per_rank : 2,
            chunks = chunks_for(f.where, ranks, held);
  run_time_problem problem{ranks, chunks, micro_batches, hop, {}};
  problem.costs.assign(std::size_t(chunks), stage);
  return problem;
}

/// The table of a family for a problem; without ranks if it refuses the problem, searches, or has a
/// table of a whole run, with updates inside.
dynamic_table step_of(family const& f, run_time_problem const& problem) {
  if (f.searches || f.refuses(problem) != nullptr) return dynamic_table(0);
  auto table = make_dynamic_table(f, problem);
  return table.mini_batch == 0 ? table : dynamic_table(0);
}

TEST_CASE("the period is the pace of many steps", "[period]") {
  int tried = 0;
  for (family const& f : catalog)
    for (int const p : {1, 2, 4, 5, 8})
      for (int const m : {2, 8, 20}) {
        for (auto const& [stage, hop] :
             {std::pair{chunk_cost{1, 1, 1}, 0L}, std::pair{chunk_cost{18513, 18086, 9331}, 626L},
              std::pair{chunk_cost{3, 7, 2}, 2L}}) {
          auto problem = problem_for(f, p, m, stage, hop);
          if (hop == 2)  // and unequal stages
            for (std::size_t c = 0; c < problem.costs.size(); ++c)
              problem.costs[c].forward += long(c * 7 % 5);
          auto const table = step_of(f, problem);
          if (table.ranks() == 0) continue;
          ++tried;
          INFO(f.name << ", p " << p << ", m " << m << ", hop " << hop);
          require_pace(problem, table);
          // The slots of one step alone delay none of many.
          if (f.trains)
            REQUIRE(period_of(problem, table, slots_of(problem, table)) ==
                    period_of(problem, table));
        }
      }
  CHECK(tried > 300);
}

TEST_CASE("the period of random tables, without and with slots, is the pace of many steps",
          "[period]") {
  dice roll(21);
  int slower_with_slots = 0;
  for (placement where : reference::placements)
    for (reference::style how : reference::styles)
      for (int i = 0; i < 40; ++i) {
        auto problem = reference::random_problem(roll, where, 5, 6, 0);
        if (where == placement::bidirectional) problem.micro_batches += problem.micro_batches % 2;
        auto const table = reference::random_table(roll, problem, where, how);
        auto const slots = slots_of(problem, table);
        INFO("placement " << int(where) << ", style " << int(how) << ", number " << i);
        require_pace(problem, table);
        require_pace(problem, table, slots);
        auto const free = period_of(problem, table), bounded = period_of(problem, table, slots);
        REQUIRE(bounded.value() >= free.value());
        slower_with_slots += !(bounded == free);
      }
  CHECK(slower_with_slots > 5);
}

TEST_CASE("the period is between the work and the stage-local span", "[period]") {
  dice roll(22);
  int shorter = 0;
  for (int i = 0; i < 4000; ++i) {
    placement const where = reference::placements[roll(0, 3)];
    auto const problem = reference::random_problem(roll, where, 4, 5, 0);
    auto const table = reference::random_table(roll, problem, where, reference::styles[roll(0, 3)]);
    auto const when = simulate(problem, table);
    long work = 0, all = 0;
    for (int rank = 0; rank < problem.ranks; ++rank) {
      work = std::max(work, when.busy(rank));
      all += when.busy(rank);
    }
    step_period const period = period_of(problem, table);
    REQUIRE(work * period.steps <= period.time);
    REQUIRE(period.time <= when.stage_local_span() * period.steps);
    REQUIRE(when.stage_local_span() <= when.makespan);
    shorter += period.time < when.stage_local_span() * period.steps;
    if (period.time > 0)
      REQUIRE(period.idle_share(all, problem.ranks) ==
              Approx(1 - double(all) * double(period.steps) / double(period.time) / problem.ranks)
                  .margin(1e-12));
  }
  CHECK(shorter > 0);  // a rank that begins late has a shorter span
}

TEST_CASE("a slowest cycle takes the period", "[period]") {
  dice roll(23);
  for (int i = 0; i < 1000; ++i) {
    placement const where = reference::placements[roll(0, 3)];
    auto problem = reference::random_problem(roll, where, 4, 5, 1);
    problem.hop = problem.bandwidth = 0;
    for (chunk_cost& c : problem.costs) c.hop = c.bandwidth = -1;
    auto const table = reference::random_table(roll, problem, where, reference::styles[roll(0, 3)]);
    long time = 0;
    auto const period = for_each_critical_of_period(problem, table, [&](int rank, int position) {
      time += problem.time(table.at(rank, position));
    });
    REQUIRE(period == period_of(problem, table));
    REQUIRE(time > 0);
    REQUIRE(time % period.time == 0);
  }
}

TEST_CASE("repeated steps are proved, in the memory of one", "[period]") {
  for (family const& f : catalog)
    for (int const p : {1, 2, 4, 6})
      for (int const m : {4, 12}) {
        auto problem = problem_for(f, p, m, {3, 2, 4, {5, -2, -3}}, 1);
        auto const table = step_of(f, problem);
        if (table.ranks() == 0) continue;
        for (int rank = 0; rank < p; ++rank)
          problem.limit = std::max(problem.limit, peak_memory(problem, table, rank));
        for (int const steps : {1, 2, 5}) {
          auto const run = repeated(problem, table, steps);
          auto const found = validate(repeated(problem, steps), run);
          INFO(f.name << ", p " << p << ", m " << m << ": " << found.text());
          REQUIRE(found.ok());
          auto const when = simulate(repeated(problem, steps), run);
          REQUIRE(when.makespan <= steps * simulate(problem, table).makespan);
          if (steps == 1) REQUIRE(when.makespan == simulate(problem, table).makespan);
        }
      }
}

TEST_CASE("no rank waits for the news that an update was right", "[period]") {
  // A rank is told by the first gradient of the next step, which has been in all stages: see
  // Steady.
  for (family const& f : catalog)
    for (int const p : {2, 5, 8})
      for (int const m : {2, 12})
        for (long const hop : {0L, 3L}) {
          auto const problem = problem_for(f, p, m, {3, 2, 4}, hop);
          auto const table = step_of(f, problem);
          if (table.ranks() == 0 || !f.trains) continue;
          constexpr int steps = 4;
          auto const run = repeated(problem, table, steps);
          auto const when = simulate(repeated(problem, steps), run);
          // By step and rank: the end of its updates, and the start of its first backward.
          std::vector<std::vector<long>> updated(steps, std::vector<long>(std::size_t(p), -1)),
              backward = updated;
          for (int rank = 0; rank < p; ++rank)
            for (int i = 0; i < run.size(rank); ++i) {
              action const a = run.at(rank, i);
              std::size_t const step = std::size_t(a.micro_batch / m), r = std::size_t(rank);
              if (a.kind == action_kind::update) updated[step][r] = when.spans.at(rank, i).end;
              if (makes_input_gradient(a.kind) && backward[step][r] < 0)
                backward[step][r] = when.spans.at(rank, i).start;
            }
          for (std::size_t step = 0; step + 1 < steps; ++step)
            for (std::size_t from = 0; from < std::size_t(p); ++from)
              for (std::size_t to = 0; to < std::size_t(p); ++to) {
                INFO(f.name << ", p " << p << ", m " << m << ", " << from << " to " << to);
                REQUIRE(backward[step + 1][to] >= updated[step][from] + (from == to ? 0 : hop));
              }
        }
}

/// The pace of updates in a long run of a family without a flush is its period.
template <class Flow>
void require_flow(run_time_problem problem, int mini_batch) {
  constexpr int updates = 150;
  step_period const period = period_of<Flow>(problem, mini_batch);
  problem.micro_batches = updates * mini_batch;
  auto table = dynamic_table(problem.ranks);
  Flow::fill_run(problem, table, mini_batch);
  REQUIRE(validate(problem, table).ok());
  auto const when = simulate(problem, table);
  REQUIRE(60 % period.steps == 0);
  for (int rank = 0; rank < problem.ranks; ++rank) {
    long ends[updates]{};
    int n = 0;
    for (int i = 0; i < table.size(rank); ++i)
      if (table.at(rank, i).kind == action_kind::update) ends[n++] = when.spans.at(rank, i).end;
    REQUIRE(n == updates);
    REQUIRE(ends[120] - ends[60] == 60 / period.steps * period.time);
  }
}

TEST_CASE("the period without a flush is the pace of updates", "[period]") {
  for (int const p : {1, 2, 3, 4, 6})
    for (int const a : {1, 2, 3, 5, 8})
      for (long const hop : {0L, 2L})
        for (long const more : {0L, 4L}) {
          run_time_problem problem{p, p, 1, hop, {}};
          problem.costs.assign(std::size_t(p), chunk_cost{3, 2, 4});
          problem.costs[std::size_t(p / 2)].forward += more;
          INFO("p " << p << ", mini-batches of " << a << ", hop " << hop << ", more " << more);
          require_flow<PipeDream<>>(problem, a);
          require_flow<PACI<>>(problem, a);
          if (a >= p - 1) require_flow<PipeDream2BW<>>(problem, a);
          // The busiest rank never waits where hops take no time.
          if (hop == 0) REQUIRE(period_of<PACI<>>(problem, a) == step_period{a * (9 + more), 1});
        }
}

TEST_CASE("the period of searched orders on a V is the work and the best idle time known",
          "[period]") {
  // Of limits between p and 2p chunks. source: Qi et al., Pipeline Parallelism with Controllable
  // Memory, 2024, and the expectation of its authors' program.
  for (int const p : {4, 6})
    for (int k = p; k <= 2 * p; k += 2) {
      run_time_problem problem{p, 2 * p, 2 * p, 0, std::vector<chunk_cost>(std::size_t(2 * p))};
      problem.limit = k;
      auto const table = make_dynamic_table<
          Searched<0, 1, placement::vee, objective::stage_local_span, 20'000'000>>(problem);
      long const idle = 3 * p - 1 - 3 * k + std::max(3 * p, p - 1 + 2 * (1 + (k + 1) / 2));
      INFO("p " << p << ", " << k << " chunks");
      REQUIRE(validate(problem, table).ok());
      CHECK(period_of(problem, table) == step_period{6 * problem.micro_batches + idle, 1});
    }
}

TEST_CASE("replicas of a stage have a period", "[period]") {
  stage_ranks<3> const where({1, 2, 1});
  run_time_problem problem{4, 3, 6, 1, {{2, 1, 1}, {5, 4, 3}, {2, 2, 1}}};
  auto const table = make_dynamic_table<OneFOneB>(problem, where);
  REQUIRE(validate(problem, table).ok());
  REQUIRE(validate(repeated(problem, 4), repeated(problem, table, 4)).ok());
  require_pace(problem, table);
  problem.micro_batches = 5;
  CHECK_THROWS_WITH(repeated(problem, make_dynamic_table<OneFOneB>(problem, where), 2),
                    "repeated steps: expected a multiple of 2 micro-batches, as chunk 1 is on 2 "
                    "ranks, got 5");
}

// Within a compiler, too.
constexpr auto times = equal_times(8, 32, {3, 2, 4}, 1);
static_assert(period_of(times, make_table<ZeroBubbleH1, 8, 32>(times)).steps == 1);
static_assert(period_of<PACI<>>(equal_times(4, 1, {2, 2, 2}), 8) == step_period{48, 1});

TEST_CASE("a period that does not exist is an error", "[period]") {
  auto const problem = equal_times(2, 2);
  dynamic_table table(2);
  using enum action_kind;
  table.row(0) = {{forward, 0, 0}, {backward, 0, 0}, {forward, 0, 1}, {backward, 0, 1}};
  table.row(1) = {{forward, 1, 0}, {forward, 1, 1}, {backward, 1, 0}, {backward, 1, 1}};
  REQUIRE(validate(problem, table).what == fault::deadlock);
  CHECK_THROWS_WITH(period_of(problem, table),
                    "the period of a schedule: the table deadlocks on rank 1, position 1");
  CHECK(period_of(problem, dynamic_table(2)) == step_period{});
  CHECK(step_period{}.idle_share(1) == 0);
  auto const right = make_dynamic_table<OneFOneB>(problem);
  CHECK_THROWS_WITH(repeated(problem, right, 0), "repeated steps: expected at least 1, got 0");
  CHECK_THROWS_AS(repeated(problem, right, 1 << 28), error);
  auto run = dynamic_table(2);
  PACI<1>::fill(problem, run);
  CHECK_THROWS_WITH(repeated(problem, run, 2),
                    "repeated steps: expected a table of one step, got a run");
}

}  // namespace
