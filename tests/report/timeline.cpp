// SPDX-License-Identifier: BSL-1.0
//
// Drawings of schedules on paper and of measured runs.
#include "catch.hpp"

#include <pipe/report/timeline.hpp>
#include <pipe/schedule.hpp>
#include <pipe/schedule/families/repeated.hpp>

namespace {

template <class Policy, int Ranks, int MicroBatches>
std::string drawing(int width) {
  pp::schedules::problem<> const question{
      Ranks,
      pp::schedules::chunks_for(Policy::where, Ranks, Policy::chunks_per_rank),
      MicroBatches,
      0,
      {}};
  auto const table = pp::schedules::make_table<Policy, Ranks, MicroBatches>();
  return pp::draw(table, pp::schedules::simulate(question, table), width);
}

}  // namespace

TEST_CASE("GPipe on three ranks") {
  // Equal times: F takes 1, BW takes 2; with 3 ranks and 2 micro-batches the makespan is 4 * (1 +
  // 2).
  CHECK(drawing<pp::GPipe, 3, 2>(12) ==
        "rank 0  01......aabb\n"
        "rank 1  .01...aabb..\n"
        "rank 2  ..01aabb....\n");
}

TEST_CASE("1F1B on two ranks, drawn twice as wide") {
  CHECK(drawing<pp::OneFOneB, 2, 2>(18) ==
        "rank 0  0011....aaaa..bbbb\n"
        "rank 1  ..00aaaa11bbbb....\n");
}

TEST_CASE("an update is shown at the end of a step, although it takes no time") {
  auto const problem = pp::schedules::equal_times(2, 2);
  auto const table =
      pp::schedules::repeated(problem, pp::schedules::make_table<pp::OneFOneB, 2, 2>(), 2);
  CHECK(pp::draw(table, pp::schedules::simulate(pp::schedules::repeated(problem, 2), table), 36) ==
        "rank 0  0011....aaaa..bbb*2233....cccc..ddd*\n"
        "rank 1  ..00aaaa11bbb*......22cccc33ddd*....\n");
  for (int const width : {0, 1, 7}) {
    std::string const text =
        pp::draw(table, pp::schedules::simulate(pp::schedules::repeated(problem, 2), table), width);
    CHECK(text.size() == std::size_t(2 * (width + 9)));
  }
}

TEST_CASE("a line has the width that was asked for, however long the step") {
  for (int const width : {1, 7, 80, 333}) {
    std::string const text = drawing<pp::OneFOneB, 4, 8>(width);
    CHECK(text.size() == std::size_t(4 * (width + 9)));
  }
}

TEST_CASE("each kind of action has its character") {
  using enum pp::schedules::action_kind;
  CHECK(pp::detail::drawn({forward, 0, 13}) == '3');
  CHECK(pp::detail::drawn({backward, 0, 2}) == 'c');
  CHECK(pp::detail::drawn({backward_input, 0, 27}) == 'b');
  CHECK(pp::detail::drawn({backward_weight, 0, 2}) == 'C');
  CHECK(pp::detail::drawn({recompute, 0, 2}) == '+');
  CHECK(pp::detail::drawn({update, 0, 2}) == '*');
}

TEST_CASE("a measured run is drawn like a schedule") {
  using enum pp::schedules::action_kind;
  pp::executed_run run{2, 1, 1};
  run.rows = {{{{forward, 0, 0}, 0, 0, 100, 0}, {{backward, 0, 0}, 0, 600, 1000, 500}},
              {{{forward, 1, 0}, 0, 100, 300, 100}, {{backward, 1, 0}, 0, 300, 600, 0}}};
  CHECK(pp::draw(run, 10) ==
        "rank 0  0.....aaaa\n"
        "rank 1  .00aaa....\n");
  run.ranks = 1, run.replicas = 2;
  CHECK(pp::draw(run, 10) ==
        "replica 0, rank 0  0.....aaaa\n"
        "replica 1, rank 0  .00aaa....\n");
}

TEST_CASE("numbers of ranks are aligned") {
  pp::detail::timeline_drawing const drawing(11, 1, 1);
  CHECK(drawing.str().substr(0, 11) == "rank  0  .\n");
  CHECK(drawing.str().substr(110) == "rank 10  .\n");
}

TEST_CASE("what cannot be drawn is refused") {
  auto const question = pp::schedules::equal_times(2, 2), longer = pp::schedules::equal_times(2, 3),
             wider = pp::schedules::equal_times(3, 2);
  auto const table = pp::schedules::make_dynamic_table<pp::GPipe>(question);
  auto const when = pp::schedules::simulate(question, table);
  CHECK_THROWS_WITH(
      pp::draw(table, when, -1),
      "timeline_drawing: expected 0 or more ranks and characters, got 2 ranks of -1 characters");
  CHECK_THROWS_WITH(
      pp::detail::timeline_drawing(-1, 1, 1),
      "timeline_drawing: expected 0 or more ranks and characters, got -1 ranks of 1 characters");
  CHECK_THROWS_WITH(
      pp::draw(table, pp::schedules::simulate(
                          longer, pp::schedules::make_dynamic_table<pp::GPipe>(longer))),
      "the timeline of rank 0: expected at most 4 actions, as its table has, got 6");
  CHECK_THROWS_WITH(
      pp::draw(table,
               pp::schedules::simulate(wider, pp::schedules::make_dynamic_table<pp::GPipe>(wider))),
      "the timeline: expected 2 ranks, as its table has, got 3");
  pp::detail::timeline_drawing lines(2, 10, 10);
  for (int const none : {-1, 2, 1000000})
    CHECK_THROWS_WITH(lines.add(none, {}, 0, 1),
                      "rank " + std::to_string(none) + " is not in [0, 2)");
  lines.add(0, {}, -100, 100);  // times beyond the drawing are not in it
  CHECK(lines.str() == "rank 0  0000000000\nrank 1  ..........\n");
}
