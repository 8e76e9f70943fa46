// SPDX-License-Identifier: BSL-1.0
//
// Every way to spoil a right table is noticed, and named by rank, position and reason.
#include "catch.hpp"

#include <climits>

#include <pipe/schedule/catalog/torch_csv.hpp>
#include <pipe/schedule/families/gpipe.hpp>

#include "reference.hpp"
#include "same_slots.hpp"

namespace {

using namespace pp;
using namespace pp::schedules;
using namespace pp::detail;
using reference::dice;
using enum pp::schedules::action_kind;

/// A table from lists, one per rank.
dynamic_table lists(std::vector<std::vector<action>> rows, placement where = placement::straight,
                    bool trains = true) {
  auto table = dynamic_table(static_cast<int>(rows.size()), where, trains);
  table.items = std::move(rows);
  return table;
}

void require_fault(verdict const& found, fault what, int rank, int position, action const& which) {
  INFO(found.text() << ": rank " << found.rank << ", position " << found.position);
  REQUIRE(!found.ok());
  REQUIRE(found.what == what);
  REQUIRE(found.rank == rank);
  REQUIRE(found.position == position);
  REQUIRE(found.which == which);
  REQUIRE(std::string(found.text()) == describe(what));
}

/// F0 F1 BW0 BW1 on a rank.
std::vector<action> two(int rank) {
  return {{forward, rank, 0}, {forward, rank, 1}, {backward, rank, 0}, {backward, rank, 1}};
}

TEST_CASE("each fault is found where it is", "[validate]") {
  auto const problem = equal_times(2, 2);
  REQUIRE(validate(problem, lists({two(0), two(1)})).ok());
  auto rows = std::vector{two(0), two(1)};

  SECTION("a wrong shape") {
    REQUIRE(validate(equal_times(3, 2), lists(rows)).what == fault::wrong_shape);
    REQUIRE(validate(equal_times(2, 0), lists(rows)).what == fault::wrong_shape);
    REQUIRE(validate(equal_times(2, 2, {}, 0, 2), lists(rows)).what == fault::wrong_shape);
    REQUIRE(validate(pp::schedules::problem<>{2, 3, 2, 0, {}}, lists(rows, placement::loop)).what ==
            fault::wrong_shape);
    REQUIRE(validate(pp::schedules::problem<>{2, 0, 2, 0, {}}, lists(rows, placement::loop)).what ==
            fault::wrong_shape);
    REQUIRE(validate(pp::schedules::problem<>{0, 0, 2, 0, {}}, lists({}, placement::loop)).what ==
            fault::wrong_shape);
  }
  SECTION("a chunk, a micro-batch or a kind that does not exist") {
    for (action const bad : {action{forward, 2, 0},
                             {forward, -1, 0},
                             {forward, 0, 2},
                             {forward, 0, -1},
                             {static_cast<action_kind>(6), 0, 0}}) {
      rows[0][1] = bad;
      require_fault(validate(problem, lists(rows)), fault::out_of_range, 0, 1, bad);
    }
  }
  SECTION("another rank's chunk") {
    rows[0][2] = {backward, 1, 0};
    require_fault(validate(problem, lists(rows)), fault::wrong_rank, 0, 2, {backward, 1, 0});
  }
  SECTION("twice, also by other names") {
    for (action const again : {action{forward, 1, 0},
                               {backward, 1, 0},
                               {backward_input, 1, 1},
                               {backward_weight, 1, 1}}) {
      rows[1] = two(1);
      rows[1].push_back(again);
      require_fault(validate(problem, lists(rows)), fault::repeated, 1, 4, again);
    }
    rows[1] = {{forward, 1, 0}, {forward, 1, 1}, {backward_input, 1, 0}, {backward, 1, 0}};
    require_fault(validate(problem, lists(rows)), fault::repeated, 1, 3, {backward, 1, 0});
  }
  SECTION("something missing") {
    rows[1].pop_back();
    require_fault(validate(problem, lists(rows)), fault::missing, 1, 3, {backward, 1, 1});
    rows[1].push_back({backward_input, 1, 1});
    require_fault(validate(problem, lists(rows)), fault::missing, 1, 4, {backward_weight, 1, 1});
    rows[1].back() = {backward_weight, 1, 1};
    require_fault(validate(problem, lists(rows)), fault::missing, 1, 4, {backward_input, 1, 1});
    rows = {two(0), {}};
    require_fault(validate(problem, lists(rows)), fault::missing, 1, 0, {forward, 1, 0});
  }
  SECTION("a backward in a schedule without") {
    require_fault(validate(problem, lists(rows, placement::straight, false)), fault::needless, 0, 2,
                  {backward, 0, 0});
  }
  SECTION("a recomputation that is too late, or without a forward") {
    rows[0].push_back({recompute, 0, 1});
    require_fault(validate(problem, lists(rows)), fault::recompute_too_late, 0, 4,
                  {recompute, 0, 1});
    rows[0] = {
        {recompute, 0, 0}, {forward, 0, 0}, {forward, 0, 1}, {backward, 0, 0}, {backward, 0, 1}};
    require_fault(validate(problem, lists(rows)), fault::before_its_input, 0, 0, {recompute, 0, 0});
  }
  SECTION("an update that is too early") {
    rows[0].push_back({update, 0, 0});
    require_fault(validate(problem, lists(rows)), fault::update_too_early, 0, 4, {update, 0, 0});
    rows[0] = {
        {forward, 0, 0}, {forward, 0, 1}, {backward, 0, 0}, {update, 0, 1}, {backward, 0, 1}};
    require_fault(validate(problem, lists(rows)), fault::before_its_input, 0, 3, {update, 0, 1});
  }
  SECTION("micro-batches out of order") {
    std::swap(rows[1][0], rows[1][1]);
    require_fault(validate(problem, lists(rows)), fault::out_of_order, 1, 1, {forward, 1, 0});
    rows[1] = two(1);
    std::swap(rows[1][2], rows[1][3]);
    require_fault(validate(problem, lists(rows)), fault::out_of_order, 1, 3, {backward, 1, 0});
    rows[1] = {{forward, 1, 0},        {forward, 1, 1},         {backward_input, 1, 0},
               {backward_input, 1, 1}, {backward_weight, 1, 1}, {backward_weight, 1, 0}};
    require_fault(validate(problem, lists(rows)), fault::out_of_order, 1, 5,
                  {backward_weight, 1, 0});
  }
  SECTION("a backward before its own forward, a W before its B") {
    rows[1] = {{forward, 1, 0}, {backward, 1, 0}, {backward, 1, 1}, {forward, 1, 1}};
    require_fault(validate(problem, lists(rows)), fault::before_its_input, 1, 2, {backward, 1, 1});
    rows[1] = {{forward, 1, 0},
               {backward, 1, 0},
               {forward, 1, 1},
               {backward_weight, 1, 1},
               {backward_input, 1, 1}};
    require_fault(validate(problem, lists(rows)), fault::before_its_input, 1, 3,
                  {backward_weight, 1, 1});
  }
  SECTION("a deadlock") {
    rows[0] = {{forward, 0, 0},
               {backward, 0, 0},
               {forward, 0, 1},
               {backward, 0, 1}};  // wants the gradient of 0 first,
    require_fault(validate(problem, lists(rows)), fault::deadlock, 0, 1,
                  {backward, 0, 0});  // rank 1 gives it after F1
  }
  SECTION("a deadlock of channels that are too short, and only of those") {
    require_fault(validate(problem, lists(rows), same_slots{{1, 1}}), fault::deadlock, 0, 1,
                  {forward, 0, 1});
    REQUIRE(validate(problem, lists(rows), same_slots{{2, 1}}).ok());
  }
}

TEST_CASE("the own rank is blamed before others that wait for it", "[validate]") {
  auto rows = std::vector{two(0), two(1), two(2)};
  rows[2] = {{backward, 2, 0}, {forward, 2, 0}, {forward, 2, 1}, {backward, 2, 1}};
  require_fault(validate(equal_times(3, 2), lists(rows)), fault::before_its_input, 2, 0,
                {backward, 2, 0});
  // two chunks of one rank in the wrong order
  auto const one = equal_times(1, 1, {}, 0, 2);
  auto const twisted = lists(
      {{{forward, 1, 0}, {forward, 0, 0}, {backward, 1, 0}, {backward, 0, 0}}}, placement::loop);
  require_fault(validate(one, twisted), fault::before_its_input, 0, 0, {forward, 1, 0});
}

TEST_CASE("memory above the limit is found where it rises there", "[validate]") {
  auto problem = equal_times(2, 2, {1, 1, 1, {3, -1, -2}});
  auto rows = std::vector{two(0), two(1)};
  problem.limit = 6;
  REQUIRE(validate(problem, lists(rows)).ok());
  problem.limit = 5;
  require_fault(validate(problem, lists(rows)), fault::over_limit, 0, 1, {forward, 0, 1});
  rows[0] = {{forward, 0, 0},
             {backward_input, 0, 0},
             {forward, 0, 1},
             {backward_weight, 0, 0},
             {backward, 0, 1}};
  rows[1] = {{forward, 1, 0}, {backward, 1, 0}, {forward, 1, 1}, {backward, 1, 1}};
  REQUIRE(validate(problem, lists(rows)).ok());
  problem.limit = 4;
  require_fault(validate(problem, lists(rows)), fault::over_limit, 0, 2, {forward, 0, 1});
}

TEST_CASE("an action reads weights that exist, and a backward those of its forward", "[validate]") {
  auto const problem = equal_times(1, 2);
  auto const unflushed = [](std::vector<action> row) {
    auto table = lists({std::move(row)});
    table.mini_batch = 1;
    return table;
  };
  std::vector<action> const right{{forward, 0, 0, 0}, {forward, 0, 1, 0},  {backward, 0, 0, 0},
                                  {update, 0, 0, 1},  {backward, 0, 1, 0}, {update, 0, 1, 2}};
  REQUIRE(validate(problem, unflushed(right)).ok());
  auto const wrong = [&](int position, int version) {
    auto row = right;
    row[std::size_t(position)].version = version;
    require_fault(validate(problem, unflushed(row)), fault::wrong_version, 0, position,
                  row[std::size_t(position)]);
  };
  wrong(1, 1);  // weights that are made later
  wrong(1, -1);
  wrong(4, 1);  // not those of its forward
  wrong(3, 2);  // an update that skips one
  wrong(5, 1);
  auto row = right;
  row.pop_back();
  require_fault(validate(problem, unflushed(row)), fault::missing, 0, 5, {update, 0, 1});
  // In a table with a flush everything reads the weights that the step began with.
  auto rows = std::vector{two(0), two(1)};
  rows[1][2].version = 1;
  require_fault(validate(equal_times(2, 2), lists(rows)), fault::wrong_version, 1, 2, rows[1][2]);
}

TEST_CASE("numbers beyond an int are counted, in memory for the actions there are", "[validate]") {
  auto const judged = [](std::string_view text, fault what, action const& which) {
    read_schedule const read = read_torch_csv(text);
    auto const problem = equal_times(read.table.ranks(), read.micro_batches, {}, 0,
                                     read.chunks / read.table.ranks());
    require_fault(validate(problem, read.table), what, 0, read.table.size(0), which);
  };
  judged("65535F65535", fault::missing, {forward, 0, 0});
  judged("1048575F0,0F16777215", fault::missing, {forward, 0, 0});
  judged("0F0,0B0,0F16777215,1048575F16777215", fault::missing, {forward, 0, 1});

  auto const huge = problem<>{1, 1 << 20, 1 << 24, 0, {}};
  REQUIRE_THROWS_WITH(make_dynamic_table<GPipe>(problem<>{1 << 20, 1 << 20, 1 << 24, 0, {}}),
                      "schedule gpipe: a table of 1048576 ranks with 33554432 actions each exceeds "
                      "the limit of 268435456 actions");
  require_fault(validate(huge, lists({two(0)}, placement::loop)), fault::missing, 0, 4,
                {forward, 0, 2});
}

TEST_CASE("an action for a rank that does not exist is named, also at run time", "[validate]") {
  for (int const rank : {-1, 2, 1 << 30}) {
    auto table = lists({two(0), two(1)});
    table.push(rank, {forward, 1, 1});
    table.push(-7, {forward, 0, 0});
    require_fault(validate(equal_times(2, 2), table), fault::no_such_rank, rank, -1,
                  {forward, 1, 1});
  }
}

TEST_CASE("a channel without slots hands nothing on", "[validate]") {
  std::vector<slot_count> slots(1);
  for (int const count : {0, -1, INT_MIN}) {
    slots[0] = slot_count{count, 1};
    require_fault(check_progress(equal_times(2, 2), lists({two(0), two(1)}), slots),
                  fault::deadlock, 0, 0, {forward, 0, 0});
  }
}

TEST_CASE("a trainer runs neither recomputations nor updates of a table", "[validate]") {
  REQUIRE(check_runs(lists({two(0), two(1)})).ok());
  require_fault(check_runs(lists({two(0), {{forward, 1, 0}, {recompute, 1, 0}}})), fault::not_run,
                1, 1, {recompute, 1, 0});
  require_fault(check_runs(lists({{{update, 0, 1}}})), fault::not_run, 0, 0, {update, 0, 1});
}

TEST_CASE("every fault has a sentence of its own", "[validate]") {
  std::set<std::string> sentences;
  for (int i = 0; i <= static_cast<int>(fault::deadlock); ++i)
    sentences.insert(describe(static_cast<fault>(i)));
  REQUIRE(sentences.size() == static_cast<std::size_t>(fault::deadlock) + 1);
  REQUIRE(sentences.count("unknown fault") == 0);
  REQUIRE(verdict{}.ok());
}

TEST_CASE("replicas: even micro-batches flow down, odd ones up", "[validate]") {
  std::vector<std::vector<action>> const rows = {
      {{forward, 0, 0}, {forward, 1, 1}, {backward, 1, 1}, {backward, 0, 0}},
      {{forward, 0, 1}, {forward, 1, 0}, {backward, 1, 0}, {backward, 0, 1}}};
  REQUIRE(validate(equal_times(2, 2), lists(rows, placement::bidirectional)).ok());
  REQUIRE(validate(equal_times(2, 2), lists(rows)).what == fault::wrong_rank);
}

// A deadlock is a fact for the compiler too.
constexpr auto deadlocking() {
  auto table = static_table<2, 4>{};
  for (action const a :
       {action{forward, 0, 0}, {backward, 0, 0}, {forward, 0, 1}, {backward, 0, 1}})
    table.push(0, a);
  for (action const a :
       {action{forward, 1, 0}, {forward, 1, 1}, {backward, 1, 0}, {backward, 1, 1}})
    table.push(1, a);
  return table;
}
constexpr verdict judged = validate(equal_times(2, 2), deadlocking());
static_assert(judged.what == fault::deadlock && judged.rank == 0 && judged.position == 1);

// So is an action that has no place.
constexpr auto with_one_more(int rank, action const& more) {
  auto table = static_table<2, 4>{};
  for (int r = 0; r < 2; ++r)
    for (action const& a :
         {action{forward, r, 0}, {forward, r, 1}, {backward, r, 0}, {backward, r, 1}})
      table.push(r, a);
  table.push(rank, more);
  table.push(7, more);
  return table;
}
constexpr bool refused(verdict const& found, fault what, int rank, int position,
                       action const& which) {
  return found.what == what && found.rank == rank && found.position == position &&
         found.which == which;
}
constexpr action more{recompute, 1, 1};
static_assert(refused(validate(equal_times(2, 2), with_one_more(1, more)), fault::too_many, 1, 4,
                      more));
static_assert(refused(validate(equal_times(2, 2), with_one_more(2, more)), fault::no_such_rank, 2,
                      -1, more));
static_assert(refused(validate(equal_times(2, 2), with_one_more(-1, more)), fault::no_such_rank, -1,
                      -1, more));

enum class change { drop, repeat, swap, move, rename };

TEST_CASE("every mutation of a right table is caught, or right again", "[validate]") {
  dice roll(6);
  int caught[5] = {}, right_again[5] = {};
  for (int i = 0; i < 12000; ++i) {
    auto const where = reference::placements[roll(0, 3)];
    auto const how = reference::styles[roll(0, 3)];
    auto const problem = reference::random_problem(roll, where, 4, 5, 0);
    auto const right = reference::random_table(roll, problem, where, how);
    auto table = right;
    auto& row = table.row(roll(0, problem.ranks - 1));
    if (row.empty()) continue;
    auto const any = [&] { return roll(0, static_cast<int>(row.size()) - 1); };
    int const at = any(), other = any();
    auto const mutation = static_cast<change>(roll(0, 4));
    switch (mutation) {
      case change::drop: row.erase(row.begin() + at); break;
      case change::repeat:
        row.insert(row.begin() + other, action(row[static_cast<std::size_t>(at)]));
        break;
      case change::swap:
        std::swap(row[static_cast<std::size_t>(at)], row[static_cast<std::size_t>(other)]);
        break;
      case change::move: {
        action const a = row[static_cast<std::size_t>(at)];
        row.erase(row.begin() + at);
        table.push(roll(0, problem.ranks - 1), a);
        break;
      }
      case change::rename: {
        action& a = row[static_cast<std::size_t>(at)];
        int const what = roll(0, 2);
        if (what == 0) a.kind = static_cast<action_kind>(roll(0, 5));
        if (what == 1) a.chunk = roll(-1, problem.chunks);
        if (what == 2) a.micro_batch = roll(-1, problem.micro_batches);
        break;
      }
    }
    verdict const found = validate(problem, table);
    INFO("mutation " << i << ", kind " << static_cast<int>(mutation) << ": " << found.text());
    REQUIRE(found.ok() == reference::is_right(problem, table));
    ++(found.ok() ? right_again : caught)[static_cast<int>(mutation)];
    if (found.ok() || found.what == fault::missing) continue;
    REQUIRE(table.at(found.rank, found.position) ==
            found.which);  // the verdict points at what it says
  }
  for (int mutation = 0; mutation < 5; ++mutation) REQUIRE(caught[mutation] > 1000);
  REQUIRE(right_again[static_cast<int>(change::repeat)] == 0);
  REQUIRE(right_again[static_cast<int>(change::swap)] > 100);
}

TEST_CASE("of a necessary action, dropping is missing and doubling is repeating", "[validate]") {
  dice roll(8);
  for (int i = 0; i < 2000; ++i) {
    auto const problem = reference::random_problem(roll, placement::vee, 4, 5, 0);
    auto const how = reference::styles[roll(0, 2)];
    auto table = reference::random_table(roll, problem, placement::vee, how);
    int const rank = roll(0, problem.ranks - 1);
    auto& row = table.row(rank);
    int const at = roll(0, static_cast<int>(row.size()) - 1);
    action const a = row[static_cast<std::size_t>(at)];
    row.push_back(a);
    require_fault(validate(problem, table), fault::repeated, rank, static_cast<int>(row.size()) - 1,
                  a);
    row.pop_back();
    row.erase(row.begin() + at);
    require_fault(validate(problem, table), fault::missing, rank, static_cast<int>(row.size()), a);
  }
}

TEST_CASE("orders drawn by lot: progress is judged as the reference judges it", "[validate]") {
  dice roll(9);
  int stuck = 0, fine = 0;
  for (int i = 0; i < 4000; ++i) {
    auto const where = reference::placements[roll(0, 3)];
    auto const problem = reference::random_problem(roll, where, 3, 3, 0);
    auto table = reference::random_table(roll, problem, where, reference::styles[roll(0, 2)]);
    for (int swaps = roll(1, 4); swaps > 0; --swaps) {
      auto& row = table.row(roll(0, problem.ranks - 1));
      if (row.size() < 2) continue;
      auto const at = static_cast<std::size_t>(roll(0, static_cast<int>(row.size()) - 2));
      std::swap(row[at], row[at + 1]);
    }
    bool const finishes = reference::run(problem, table).finished;
    REQUIRE(check_progress(problem, table).ok() == finishes);
    REQUIRE(simulate(problem, table).complete == finishes);
    ++(finishes ? fine : stuck);
  }
  REQUIRE(stuck > 200);
  REQUIRE(fine > 200);
}

TEST_CASE("a thousand ranks at run time", "[validate]") {
  auto const problem = equal_times(1024, 512, {10, 10, 10}, 1);
  auto const table = make_dynamic_table<OneFOneB>(problem);
  REQUIRE(validate(problem, table).ok());
  auto const when = simulate(problem, table);
  REQUIRE(when.complete);
  REQUIRE(when.makespan >= floor_of(problem).makespan);
}

}  // namespace
