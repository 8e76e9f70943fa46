// SPDX-License-Identifier: BSL-1.0
//
// `simulate` and what is read off it, against the event-driven reference on random tables.
#include "catch.hpp"

#include <algorithm>
#include <climits>
#include <string>
#include <vector>

#include "reference.hpp"

namespace {

using namespace pp;
using namespace pp::schedules;
using namespace pp::detail;
using reference::dice;
using reference::many_costs;

template <class Timeline>
void require_equal(Timeline const& when, reference::course const& check) {
  REQUIRE(when.complete == check.finished);
  REQUIRE(when.makespan == check.makespan);
  for (int rank = 0; rank < when.ranks(); ++rank) {
    auto const& spans = check.spans[static_cast<std::size_t>(rank)];
    REQUIRE(when.spans.size(rank) == static_cast<int>(spans.size()));
    long busy = 0;
    for (int i = 0; i < when.spans.size(rank); ++i) {
      auto const [start, end] = spans[static_cast<std::size_t>(i)];
      REQUIRE(when.spans.at(rank, i).start == start);
      REQUIRE(when.spans.at(rank, i).end == end);
      busy += end - start;
    }
    REQUIRE(when.busy(rank) == busy);
    REQUIRE(when.idle(rank) == check.makespan - busy);
  }
}

/// The most intervals [from, until) that hold one moment.
int most_at_once(std::vector<std::pair<long, long>> const& lives) {
  int most = 0;
  for (auto const& [moment, ignored] : lives) {
    int live = 0;
    for (auto const& [from, until] : lives) live += from <= moment && moment < until;
    most = std::max(most, live);
  }
  return most;
}

/// When each (kind, micro-batch) of a chunk ran.
std::map<std::pair<action_kind, int>, std::pair<long, long>> times_of(dynamic_table const& table,
                                                                      reference::course const& run,
                                                                      int chunk) {
  std::map<std::pair<action_kind, int>, std::pair<long, long>> times;
  for (std::size_t rank = 0; rank < table.items.size(); ++rank)
    for (std::size_t i = 0; i < table.items[rank].size(); ++i)
      if (auto const& a = table.items[rank][i]; a.chunk == chunk)
        times[{a.kind, a.micro_batch}] = run.spans[rank][i];
  return times;
}

TEST_CASE("simulate agrees with the reference on random tables", "[simulate]") {
  dice roll(1);
  for (placement where : reference::placements)
    for (reference::style how : reference::styles)
      for (int i = 0; i < 150; ++i) {
        auto const problem = reference::random_problem(roll, where, 5, 6, 0);
        auto const table = reference::random_table(roll, problem, where, how);
        REQUIRE(reference::is_right(problem, table));
        REQUIRE(validate(problem, table).ok());
        auto const when = simulate(problem, table), again = simulate(problem, table);
        require_equal(when, reference::run(problem, table));
        double const busy = static_cast<double>(when.total_busy()), ranks = problem.ranks;
        if (when.makespan > 0)
          REQUIRE(when.bubble_by_makespan() ==
                  Approx(1 - busy / (ranks * static_cast<double>(when.makespan))).margin(1e-12));
        REQUIRE(when.bubble_by_stage_local_span() <= when.bubble_by_makespan() + 1e-12);
        REQUIRE(again.makespan == when.makespan);
      }
}

TEST_CASE("an empty rank and an empty time are no trouble", "[simulate]") {
  auto const nothing = equal_times(2, 2, {0, 0, 0});
  auto const when = simulate(nothing, make_dynamic_table<OneFOneB>(nothing));
  REQUIRE(when.complete);
  REQUIRE(when.makespan == 0);
  REQUIRE(when.bubble_by_makespan() == 0);
  REQUIRE(simulate(nothing, dynamic_table(2)).stage_local_span() == 0);
}

TEST_CASE("what does not exist is refused at run time", "[simulate]") {
  using enum action_kind;
  auto const problem = equal_times(2, 2);
  auto const table = make_dynamic_table<OneFOneB>(problem);
  auto const constant = make_table<OneFOneB, 2, 2>();
  auto const when = simulate(problem, table);
  for (int const none : {-1, 2, 1000000, INT_MAX, INT_MIN}) {
    std::string const why = "rank " + std::to_string(none) + " is not in [0, 2)";
    CHECK_THROWS_WITH(when.busy(none), why);
    CHECK_THROWS_WITH(when.idle(none), why);
    CHECK_THROWS_WITH(peak_in_flight(table, none), why);
    CHECK_THROWS_WITH(peak_in_flight(constant, none, 0), why);
    CHECK_THROWS_WITH(peak_versions(table, none), why);
    CHECK_THROWS_WITH(peak_memory(problem, constant, none), why);
  }
  for (action const& none : {action{forward, 2, 0}, action{forward, -1, 0}, action{backward, 0, 2},
                             action{backward, 0, -1}, action{forward, INT_MAX, INT_MAX}}) {
    auto wrong = dynamic_table(2);
    wrong.push(0, {forward, 0, 0});
    wrong.push(0, none);
    CHECK_THROWS_WITH(simulate(problem, wrong),
                      "action 1 of rank 0: chunk " + std::to_string(none.chunk) +
                          " and micro-batch " + std::to_string(none.micro_batch) +
                          " are not of 2 chunks and 2 micro-batches");
    CHECK_THROWS_AS(communicate(problem, wrong), error);
  }
  for (int const none : {-1, 1, INT_MAX, INT_MIN})
    CHECK_THROWS_WITH(boundary_slots(problem, table, when, none),
                      "boundary " + std::to_string(none) + " is not in [0, 1)");
  auto const other = simulate(equal_times(2, 3), make_dynamic_table<OneFOneB>(equal_times(2, 3)));
  CHECK_THROWS_AS(boundary_slots(problem, table, other, 0), error);
  CHECK_THROWS_AS(for_each_critical(problem, table, other, [](int, int) {}), error);
  CHECK_THROWS_WITH(table.at(2, 0), "rank 2 is not in [0, 2)");
  CHECK_THROWS_WITH(table.at(0, 4), "position 4 is not in [0, 4)");
  CHECK_THROWS_WITH(table.at(0, -1), "position -1 is not in [0, 4)");
  CHECK_THROWS_WITH(table.size(-1), "rank -1 is not in [0, 2)");
  CHECK_THROWS_WITH(simulate(equal_times(3, 2), table),
                    "a schedule's table: expected 3 ranks, as its problem has, got 2");
  CHECK_THROWS_WITH(simulate(problem, table, std::vector<slot_count>()),
                    "slots: expected a number for each of the 1 boundaries between 2 chunks");
  CHECK_THROWS_WITH(dynamic_table(-1), "a schedule's table: expected 0 or more ranks, got -1");

  run_time_problem cheap{2, 2, 2, 0, std::vector<chunk_cost>(1)};  // a cost is missing
  CHECK(validate(cheap, table).what == fault::wrong_shape);
  for (run_time_problem const& none :
       {cheap, run_time_problem{0, 0, 2, 0, {}}, run_time_problem{-2, -2, 2, 0, {}},
        run_time_problem{2, 2, 0, 0, {}}, run_time_problem{2, 3, 2, 0, std::vector<chunk_cost>(3)}})
    for (family const& f : catalog) {
      CHECK_THROWS_AS(make_dynamic_table(f, none), error);
      CHECK(f.refuses(none) != nullptr);
      CHECK_THROWS_AS(floor_of(none, f.where), error);
      CHECK_THROWS_AS(certify(none, table), error);
    }
  CHECK_THROWS_WITH(
      make_dynamic_table<VHalf>(equal_times(4, 8, {}, 0, 3)),
      "a schedule of 2 chunks per rank on 4 ranks: expected a problem of 8 chunks, got 12");
  CHECK_THROWS_WITH(make_dynamic_table<Chimera>(equal_times(3, 4)),
                    std::string("schedule chimera: ") + why_refused<Chimera>(3, 4) +
                        "; got 3 ranks, 3 chunks and 4 micro-batches");
  std::string const chunks = "a cost for each, and at least 1 micro-batch; got ";
  CHECK_THROWS_WITH(simulate(cheap, table),
                    "the schedule's problem: expected as many chunks as ranks, " + chunks +
                        "2 ranks, 2 chunks and 2 micro-batches");
  CHECK_THROWS_WITH(make_dynamic_table<VHalf>(run_time_problem{2, 3, 2, 0, {}}),
                    "the schedule's problem: expected a multiple of the ranks as chunks, " +
                        chunks + "2 ranks, 3 chunks and 2 micro-batches");
  CHECK_THROWS_WITH(boundary_slots(equal_times(3, 2), table, when, 0),
                    "a schedule's table: expected 3 ranks, as its problem has, got 2");
}

TEST_CASE("peaks in flight are those of the timeline", "[in_flight]") {
  dice roll(2);
  for (reference::style how :
       {reference::style::whole, reference::style::split, reference::style::anything})
    for (placement where : {placement::straight, placement::loop, placement::vee})
      for (int i = 0; i < 100; ++i) {
        auto const problem = reference::random_problem(roll, where, 4, 6, 1);
        auto const table = reference::random_table(roll, problem, where, how);
        auto const run = reference::run(problem, table);
        for (int rank = 0; rank < problem.ranks; ++rank) {
          std::vector<std::pair<long, long>> on_rank;
          for (int chunk = 0; chunk < problem.chunks; ++chunk) {
            if (rank_of(where, problem.ranks, chunk) != rank) continue;
            auto times = times_of(table, run, chunk);
            std::vector<std::pair<long, long>> in_chunk;
            for (int mb = 0; mb < problem.micro_batches; ++mb) {
              auto const last = times.count({action_kind::backward, mb})
                                    ? action_kind::backward
                                    : action_kind::backward_weight;
              in_chunk.emplace_back(times.at({action_kind::forward, mb}).first,
                                    times.at({last, mb}).second);
            }
            REQUIRE(peak_in_flight(table, rank, chunk) == most_at_once(in_chunk));
            on_rank.insert(on_rank.end(), in_chunk.begin(), in_chunk.end());
          }
          REQUIRE(peak_in_flight(table, rank) == most_at_once(on_rank));
        }
      }
}

TEST_CASE("memory adds up", "[in_flight]") {
  using enum action_kind;
  auto const problem = unequal_times(1, 2, {{1, 1, 1, {10, -6, -4}}});
  auto table = dynamic_table(1);
  for (action const a :
       {action{forward, 0, 0}, {forward, 0, 1}, {backward_input, 0, 0}, {backward_input, 0, 1}})
    table.push(0, a);
  REQUIRE(peak_memory(problem, table, 0) == 20);
  table = dynamic_table(1);
  for (action const a :
       {action{forward, 0, 0}, {backward_input, 0, 0}, {forward, 0, 1}, {backward, 0, 1}})
    table.push(0, a);
  REQUIRE(peak_memory(problem, table, 0) == 14);
  table = dynamic_table(1);
  for (action const a :
       {action{forward, 0, 0}, {backward_input, 0, 0}, {backward_weight, 0, 0}, {forward, 0, 1}})
    table.push(0, a);
  REQUIRE(peak_memory(problem, table, 0) == 10);
}

std::vector<slot_count> slots_of(many_costs const& problem, dynamic_table const& table) {
  auto const when = simulate(problem, table);
  std::vector<slot_count> slots;
  for (int c = 0; c + 1 < problem.chunks; ++c)
    slots.push_back(boundary_slots(problem, table, when, c));
  return slots;
}

/// Whether bounded channels leave every action where it was.
bool undisturbed(many_costs const& problem, dynamic_table const& table,
                 std::vector<slot_count> const& slots) {
  auto const free = simulate(problem, table), bound = simulate(problem, table, slots);
  for (int rank = 0; rank < problem.ranks; ++rank) {
    if (free.spans.size(rank) != bound.spans.size(rank)) return false;
    for (int i = 0; i < free.spans.size(rank); ++i)
      if (free.spans.at(rank, i).start != bound.spans.at(rank, i).start) return false;
  }
  return bound.complete;
}

TEST_CASE("boundary slots neither deadlock nor delay, and one fewer does", "[slots]") {
  dice roll(3);
  int tight = 0;
  for (placement where : reference::placements)
    for (reference::style how : reference::styles)
      for (int i = 0; i < 120; ++i) {
        int const shortest = roll(0, 1);
        auto const problem = reference::random_problem(roll, where, 5, 7, shortest);
        auto const table = reference::random_table(roll, problem, where, how);
        auto slots = slots_of(problem, table);
        REQUIRE(validate(problem, table, slots).ok());
        REQUIRE(undisturbed(problem, table, slots));

        auto more = slots;
        for (auto& s : more) s.activation += roll(0, 2), s.gradient += roll(0, 2);
        REQUIRE(validate(problem, table, more).ok());
        REQUIRE(undisturbed(problem, table, more));

        if (shortest == 0) continue;
        for (auto& s : slots)
          for (int* count : {&s.activation, &s.gradient}) {
            if (*count < 2) continue;
            --*count;
            REQUIRE(!undisturbed(problem, table, slots));
            ++*count, ++tight;
          }
      }
  REQUIRE(tight > 1000);
}

TEST_CASE("boundary slots are the values that lie there at once", "[slots]") {
  dice roll(4);
  for (int i = 0; i < 300; ++i) {
    auto const how = reference::styles[roll(0, 2)];
    auto const problem = reference::random_problem(roll, placement::loop, 4, 7, 1);
    auto const table = reference::random_table(roll, problem, placement::loop, how);
    auto const run = reference::run(problem, table);
    auto const slots = slots_of(problem, table);
    for (int c = 0; c + 1 < problem.chunks; ++c) {
      auto here = times_of(table, run, c), next = times_of(table, run, c + 1);
      std::vector<std::pair<long, long>> values, gradients;
      bool const whole = how == reference::style::whole,
                 trains = how != reference::style::forward_only;
      auto const first = whole ? action_kind::backward : action_kind::backward_input;
      auto const last = whole ? action_kind::backward : action_kind::backward_weight;
      for (int mb = 0; mb < problem.micro_batches; ++mb) {
        values.emplace_back(here.at({action_kind::forward, mb}).first,
                            next.at({trains ? last : action_kind::forward, mb}).second);
        if (trains) gradients.emplace_back(next.at({first, mb}).first, here.at({last, mb}).second);
      }
      auto const& s = slots[static_cast<std::size_t>(c)];
      REQUIRE(s == slot_count{most_at_once(values), most_at_once(gradients)});
    }
  }
}

TEST_CASE("as many slots as micro-batches in flight are enough at any times", "[slots]") {
  dice roll(5);
  for (placement where : {placement::straight, placement::loop, placement::vee})
    for (reference::style how : {reference::style::whole, reference::style::split})
      for (int i = 0; i < 150; ++i) {
        auto const problem = reference::random_problem(roll, where, 5, 7, 0);
        auto const table = reference::random_table(roll, problem, where, how);
        std::vector<slot_count> slots;
        for (int c = 0; c + 1 < problem.chunks; ++c) {
          int const peak = peak_in_flight(table, rank_of(where, problem.ranks, c), c);
          slots.push_back(
              slot_count{how == reference::style::whole ? peak : problem.micro_batches, peak});
        }
        REQUIRE(validate(problem, table, slots).ok());
        REQUIRE(undisturbed(problem, table, slots));
      }
}

}  // namespace
