// SPDX-License-Identifier: BSL-1.0
//
// Drawings say what tables, timelines and memory say.
#include <set>

#include "catch.hpp"

#include <pipe/report/terminal.hpp>
#include <pipe/schedule/communication.hpp>
#include "report/tables.hpp"

namespace {

/// Calls check(problem, table, name) with tables of all sorts.
template <class Check>
void for_tables(Check check) {
  auto const plain = pp::schedules::equal_times(4, 6, {1, 2, 1});
  check(plain, pp::schedules::make_table<pp::OneFOneB, 4, 6>(plain), "1f1b, static");
  check(plain, pp::schedules::make_dynamic_table<pp::GPipe>(plain), "gpipe, dynamic");
  auto const slow_links = pp::schedules::equal_times(3, 5, {2, 3, 4}, 5);
  check(slow_links, pp::schedules::make_dynamic_table<pp::OneFOneB>(slow_links), "1f1b, hops");
  check(plain, pp::schedules::make_table<pp::ForwardOnly, 4, 6>(plain), "forward only");
  for (pp::schedules::placement const where :
       {pp::schedules::placement::loop, pp::schedules::placement::vee})
    check(tables::looped, tables::split(tables::looped, where),
          where == pp::schedules::placement::vee ? "vee" : "loop");
}

}  // namespace

TEST_CASE("the tables to be drawn are schedules") {
  for_tables([](auto const& question, auto const& table, char const* name) {
    INFO(name);
    CHECK(pp::schedules::validate(question, table).text() ==
          std::string(pp::detail::describe(pp::schedules::fault::none)));
  });
}

TEST_CASE("every action is drawn where the timeline has it") {
  for_tables([](auto const& question, auto const& table, char const* name) {
    INFO(name);
    auto const when = pp::schedules::simulate(question, table);
    pp::drawings::drawing const d = pp::drawings::of_table(question, table, when);
    CHECK(d.makespan == when.makespan);
    CHECK(d.bubble_by_makespan == when.bubble_by_makespan());
    CHECK(d.bubble_by_stage_local_span == when.bubble_by_stage_local_span());
    REQUIRE(int(d.ranks.size()) == table.ranks());
    for (int rank = 0; rank < table.ranks(); ++rank) {
      REQUIRE(int(d.ranks[std::size_t(rank)].actions.size()) == table.size(rank));
      CHECK(d.ranks[std::size_t(rank)].busy() == when.busy(rank));
      for (int i = 0; i < table.size(rank); ++i) {
        CHECK(d.at(rank, i).what == table.at(rank, i));
        CHECK(d.at(rank, i).start == when.spans.at(rank, i).start);
        CHECK(d.at(rank, i).end == when.spans.at(rank, i).end);
        CHECK(d.at(rank, i).shade == table.at(rank, i).chunk / question.ranks);
      }
    }
  });
}

TEST_CASE("the critical path is that of the schedule") {
  for_tables([](auto const& question, auto const& table, char const* name) {
    INFO(name);
    auto const when = pp::schedules::simulate(question, table);
    std::set<std::pair<int, int>> expected, found;
    pp::detail::for_each_critical(
        question, table, when, [&](int rank, int position) { expected.insert({rank, position}); });
    pp::drawings::drawing const d = pp::drawings::of_table(question, table, when);
    for (int rank = 0; rank < table.ranks(); ++rank)
      for (int i = 0; i < table.size(rank); ++i)
        if (d.at(rank, i).critical) found.insert({rank, i});
    CHECK(found == expected);
  });
}

TEST_CASE("what crosses ranks is handed over once, in time") {
  for_tables([](auto const& question, auto const& table, char const* name) {
    INFO(name);
    pp::drawings::drawing const d =
        pp::drawings::of_table(question, table, pp::schedules::simulate(question, table));
    int expected = 0;
    for (int rank = 0; rank < table.ranks(); ++rank)
      for (int i = 0; i < table.size(rank); ++i)
        expected += pp::detail::receiver_of(question, table, rank, table.at(rank, i)) >= 0;
    CHECK(int(d.transfers.size()) == expected);
    for (pp::detail::drawn_transfer const& t : d.transfers) {
      pp::detail::drawn_action const &from = d.at(t.from_rank, t.from), &to = d.at(t.to_rank, t.to);
      CHECK(t.to_rank == pp::detail::receiver_of(question, table, t.from_rank, from.what));
      CHECK(from.what.micro_batch == to.what.micro_batch);
      CHECK(from.end + question.hop <= to.start);
    }
  });
}

TEST_CASE("memory rises to the peak and is all given back") {
  for_tables([](auto const& question, auto const& table, char const* name) {
    INFO(name);
    pp::drawings::drawing const d =
        pp::drawings::of_table(question, table, pp::schedules::simulate(question, table));
    for (int rank = 0; rank < table.ranks(); ++rank) {
      pp::detail::drawn_rank const& r = d.ranks[std::size_t(rank)];
      long highest = 0, time = -1;
      for (pp::detail::memory_point const& p : r.memory) {
        CHECK(p.time > time);
        time = p.time;
        highest = std::max(highest, p.live);
      }
      CHECK(highest == pp::schedules::peak_memory(question, table, rank));
      CHECK(r.peak_memory == highest);
      CHECK(r.memory.back().live == 0);
    }
  });
}

TEST_CASE("a deadlock is drawn up to where it is") {
  auto const question = pp::schedules::equal_times(2, 1);
  auto table = pp::schedules::dynamic_table(2);
  using enum pp::schedules::action_kind;
  for (pp::schedules::action const& a :
       {pp::schedules::action{forward, 0, 0}, pp::schedules::action{backward, 0, 0}})
    table.push(0, a);
  for (pp::schedules::action const& a :
       {pp::schedules::action{backward, 1, 0}, pp::schedules::action{forward, 1, 0}})
    table.push(1, a);
  pp::drawings::drawing const d =
      pp::drawings::of_table(question, table, pp::schedules::simulate(question, table), {"stuck"});
  CHECK_FALSE(d.complete);
  CHECK(d.ranks[0].actions.size() == 1);
  CHECK(d.ranks[1].actions.empty());
  CHECK(pp::detail::summary_of(d).find("deadlock") == 0);
  CHECK(pp::drawings::as_text(d, {.width = 4}).find("rank 0  0000\nrank 1  ....\n") !=
        std::string::npos);
}

TEST_CASE("several steps are drawn one after the other, each with its updates") {
  auto const problem = pp::schedules::equal_times(4, 8, {}, 0, 2);
  auto const table = pp::schedules::make_dynamic_table<pp::ZeroBubbleV>(problem);
  pp::drawings::drawing const d = pp::drawings::of_steps(problem, table, 3, {"three steps"});
  CHECK(d.words.title == "three steps");
  CHECK(d.complete);
  CHECK(d.makespan < 3 * pp::schedules::simulate(problem, table).makespan);
  for (pp::detail::drawn_rank const& r : d.ranks) {
    int step = 0, updates = 0;
    for (pp::detail::drawn_action const& a : r.actions) {
      // Actions of a step, then an update for each of the rank's two chunks.
      CHECK(a.what.micro_batch / problem.micro_batches == step);
      updates += a.what.kind == pp::schedules::action_kind::update;
      if (updates == 2) ++step, updates = 0;
    }
    CHECK(step == 3);
  }
  CHECK_THROWS_AS(pp::drawings::of_steps(problem, table, 0), pp::error);
}

TEST_CASE("two replicas have two shades") {
  auto const question = pp::schedules::problem<>{2, 2, 2, 0, {}};
  auto table = pp::schedules::dynamic_table(2, pp::schedules::placement::bidirectional, false);
  using enum pp::schedules::action_kind;
  table.push(0, {forward, 0, 0}), table.push(0, {forward, 1, 1});
  table.push(1, {forward, 0, 1}), table.push(1, {forward, 1, 0});
  pp::drawings::drawing const d =
      pp::drawings::of_table(question, table, pp::schedules::simulate(question, table));
  CHECK(d.at(0, 0).shade == 0);
  CHECK(d.at(0, 1).shade == 1);
  CHECK(d.at(1, 0).shade == 1);
  CHECK(d.at(1, 1).shade == 0);
}

TEST_CASE("amounts are short and have their unit") {
  CHECK(pp::detail::readable_amount(1234567, "") == "1,234,567");
  CHECK(pp::detail::readable_amount(0, "ns") == "0 ns");
  CHECK(pp::detail::readable_amount(999, "ns") == "999 ns");
  CHECK(pp::detail::readable_amount(1250000, "ns") == "1.25 ms");
  CHECK(pp::detail::readable_amount(99960, "ns") == "100 µs");
  CHECK(pp::detail::readable_amount(5'000'000'000'000, "ns") == "5000 s");
  CHECK(pp::detail::readable_amount(1536, "B") == "1.5 KiB");
  CHECK(pp::detail::readable_amount(0, "B") == "0 B");
  CHECK(pp::detail::readable_amount(77300000, "FLOP") == "77.3 MFLOP");
}

TEST_CASE("a summary names both bubbles") {
  auto const question = pp::schedules::equal_times(4, 8);
  auto const table = pp::schedules::make_table<pp::OneFOneB, 4, 8>(question);
  CHECK(
      pp::detail::summary_of(
          pp::drawings::of_table(question, table, pp::schedules::simulate(question, table))) ==
      "makespan 33, bubble 27.3 % of the makespan, 27.3 % of the stage-local span, peak memory 4");
}

TEST_CASE("what is no drawing of a table is refused") {
  auto const question = pp::schedules::equal_times(2, 2), wider = pp::schedules::equal_times(3, 2);
  auto const table = pp::schedules::make_dynamic_table<pp::GPipe>(question);
  auto const when = pp::schedules::simulate(question, table);
  auto const other =
      pp::schedules::simulate(wider, pp::schedules::make_dynamic_table<pp::GPipe>(wider));
  CHECK_THROWS_AS(pp::drawings::of_table(question, table, other), pp::error);
  CHECK_THROWS_AS(pp::drawings::of_table(pp::schedules::equal_times(2, 1), table, when), pp::error);
  pp::drawings::drawing const d = pp::drawings::of_table(question, table, when);
  CHECK(d.at(1, 3).what == table.at(1, 3));
  for (auto const& [rank, position] :
       {std::pair(-1, 0), std::pair(2, 0), std::pair(0, 4), std::pair(0, -1)})
    CHECK_THROWS_WITH(d.at(rank, position), "the drawing of 2 ranks has no action " +
                                                std::to_string(position) + " of rank " +
                                                std::to_string(rank));
}
