// SPDX-License-Identifier: BSL-1.0
//
// Stages that several ranks run: the proof, its faults, and times against a plain second opinion.
#include "catch.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <pipe/report/drawing.hpp>
#include <pipe/schedule/boundary_slots.hpp>
#include <pipe/schedule/shared_weights.hpp>
#include <pipe/schedule/stage_ranks.hpp>

#include "reference.hpp"

namespace {

using namespace pp;
using namespace pp::schedules;
using reference::dice;

/// The numbers of the ranks of four stages, or of fewer and no ranks for the others.
constexpr int counts[][4] = {{1, 2, 1, 1}, {2, 1, 1, 3}, {3, 3, 1, 2}, {1, 1, 1, 1}, {2, 2, 2, 2}};
constexpr int stages = 4;
using table_type = detail::dynamic_table_on<stage_ranks<stages>>;

/// A problem of times up to 9, also 0.
run_time_problem random_problem(dice& roll, stage_ranks<stages> const& where, int most) {
  run_time_problem p{where.first[stages], stages, roll(1, most), roll(0, 2), {}};
  for (int s = 0; s < stages; ++s) {
    chunk_cost c{roll(0, 9), roll(0, 9), roll(0, 9)};
    if (roll(0, 4) == 0) c = {0, 0, 0};
    p.costs.push_back(c);
  }
  return p;
}
template <class Use>
void with_every_policy(run_time_problem const& p, stage_ranks<stages> const& where, Use use) {
  use(make_dynamic_table<OneFOneB>(p, where));
  use(make_dynamic_table<EagerOneFOneB>(p, where));
  use(make_dynamic_table<GPipe>(p, where));
}

/// Whether a table is right, by the letter: every F and BW once, on its rank, in order on every
/// rank, and an order of all exists in which each follows its inputs and, if it adds to a gradient,
/// that of the micro-batch before.
bool is_right(run_time_problem const& p, table_type const& table) {
  std::set<reference::result> made;
  std::vector<std::size_t> done(std::size_t(p.ranks));
  std::vector<int> last(std::size_t(2 * p.ranks), -1);
  for (int rank = 0; rank < p.ranks; ++rank)
    for (action const& a : table.row(rank)) {
      int const first = table.where.first[a.chunk], step = table.where.first[a.chunk + 1] - first;
      if (first + a.micro_batch % step != rank) return false;
      int& before = last[std::size_t(2 * rank + (a.kind == action_kind::forward))];
      if (a.micro_batch <= before) return false;
      before = a.micro_batch;
    }
  for (bool changed = true; changed;) {
    changed = false;
    for (int rank = 0; rank < p.ranks; ++rank) {
      auto const& row = table.row(rank);
      if (done[std::size_t(rank)] == row.size()) continue;
      action const a = row[done[std::size_t(rank)]];
      auto needs = reference::needs_of(a, p.chunks);
      if (a.kind == action_kind::backward && a.micro_batch > 0)
        needs.insert({'W', a.chunk, a.micro_batch - 1});
      if (a.kind == action_kind::forward && a.micro_batch > 0)
        needs.insert({'F', a.chunk, a.micro_batch - 1});
      if (!std::includes(made.begin(), made.end(), needs.begin(), needs.end())) continue;
      for (auto const& r : reference::results_of(a)) made.insert(r);
      ++done[std::size_t(rank)];
      changed = true;
    }
  }
  return made.size() == std::size_t(3 * p.chunks * p.micro_batches);
}

}  // namespace

TEST_CASE("tables with replicas are proved, also over the slots that they need", "[stage_ranks]") {
  dice roll(5);
  for (int tried = 0; tried < 200; ++tried) {
    stage_ranks<stages> const where(counts[roll(0, 4)]);
    auto const p = random_problem(roll, where, 12);
    with_every_policy(p, where, [&](table_type const& table) {
      REQUIRE(validate(p, table).ok());
      REQUIRE(is_right(p, table));
      auto const when = simulate(p, table);
      // A chunk's actions of a kind begin and end in the order of the micro-batches, whatever their
      // ranks.
      std::vector<time_span> of(std::size_t(p.micro_batches));
      for (int s = 0; s < stages; ++s)
        for (action_kind const kind : {action_kind::forward, action_kind::backward}) {
          detail::for_each_of_chunk(table, s, [&](int rank, int i, action const& a) {
            if (a.kind == kind) of[std::size_t(a.micro_batch)] = when.spans.at(rank, i);
          });
          for (std::size_t mb = 1; mb < of.size(); ++mb) {
            REQUIRE(of[mb].start >= of[mb - 1].start);
            REQUIRE(of[mb].end >= of[mb - 1].end);
          }
        }
      long first = -1, last = -1;
      detail::for_each_critical(p, table, when, [&](int rank, int position) {
        time_span const span = when.spans.at(rank, position);
        if (first < 0) last = span.end;
        first = span.start;
      });
      REQUIRE(first == 0);
      REQUIRE(last == when.makespan);
      std::vector<detail::slot_count> slots;
      for (int b = 0; b + 1 < stages; ++b) slots.push_back(boundary_slots(p, table, when, b));
      REQUIRE(validate(p, table, slots).ok());
      REQUIRE(simulate(p, table, slots).makespan == when.makespan);
    });
  }
}
TEST_CASE("mutated tables with replicas are refused, or right", "[stage_ranks]") {
  dice roll(9);
  int refused = 0, right = 0, moved = 0;
  for (int tried = 0; tried < 3000; ++tried) {
    stage_ranks<stages> const where(counts[roll(0, 4)]);
    auto const p = random_problem(roll, where, 8);
    table_type table = make_dynamic_table<OneFOneB>(p, where);
    auto& row = table.row(roll(0, p.ranks - 1));
    if (row.empty()) continue;
    auto const at = [&](auto const& of) { return std::size_t(roll(0, int(of.size()) - 1)); };
    if (roll(0, 3) == 0) {  // to another replica, or to a rank without the chunk
      auto& to = table.row(roll(0, p.ranks - 1));
      if (&to == &row) continue;
      std::size_t const from = at(row);
      to.insert(to.begin() + roll(0, int(to.size())), row[from]);
      row.erase(row.begin() + long(from));
      REQUIRE(validate(p, table).what == fault::wrong_rank);
      ++moved;
      continue;
    }
    std::swap(row[at(row)], row[at(row)]);
    verdict const found = validate(p, table);
    INFO(found.text());
    REQUIRE(found.ok() == is_right(p, table));
    REQUIRE(simulate(p, table).complete == detail::check_progress(p, table).ok());
    ++(found.ok() ? right : refused);
  }
  CHECK(moved > 300);
  CHECK(refused > 1000);
  CHECK(right > 300);
}
TEST_CASE("weight gradients out of order are found, whichever ranks add them", "[stage_ranks]") {
  using enum action_kind;
  stage_ranks<1> const where({2});
  run_time_problem const p{2, 1, 3, 0, {chunk_cost{}}};
  detail::dynamic_table_on<stage_ranks<1>> table(2, where);
  for (action const& a :
       {action{forward, 0, 0}, {forward, 0, 2}, {backward, 0, 2}, {backward, 0, 0}})
    table.push(0, a);
  for (action const& a : {action{forward, 0, 1}, {backward, 0, 1}}) table.push(1, a);
  CHECK(validate(p, table).what == fault::out_of_order);
  // BW 2 of rank 0 adds after BW 1 of rank 1, which waits for nothing of rank 0 but BW 0.
  std::swap(table.row(0)[2], table.row(0)[3]);
  CHECK(validate(p, table).ok());
  // Now rank 1 would add 1 while 0 waits behind an F that does not come.
  detail::dynamic_table_on<stage_ranks<2>> two(3, stage_ranks<2>({2, 1}));
  run_time_problem const q{3, 2, 2, 0, {chunk_cost{}, chunk_cost{}}};
  for (action const& a : {action{forward, 0, 0}, {backward, 0, 0}}) two.push(0, a);
  for (action const& a : {action{forward, 0, 1}, {backward, 0, 1}}) two.push(1, a);
  for (action const& a :
       {action{forward, 1, 1}, {backward, 1, 1}, {forward, 1, 0}, {backward, 1, 0}})
    two.push(2, a);
  CHECK(validate(q, two).what == fault::out_of_order);
}

template <class Policy>
void order_costs_no_time() {
  for (int p = 2; p <= 8; p += 2)
    for (int m : {1, 2, 4, 5, 7, 8, 12, 16, 20}) {
      problem<> const question{p, p, m, 0, same_cost{chunk_cost{1, 1, 1}}};
      if (why_refused<Policy>(question) != nullptr) continue;
      auto const two = make_dynamic_table<Policy>(question);
      auto const one = make_dynamic_table<Policy>(question, detail::shared_weights{Policy::where});
      INFO("P " << p << ", M " << m);
      REQUIRE(validate(question, one).ok());
      REQUIRE(simulate(question, one).makespan == simulate(question, two).makespan);
    }
}
TEST_CASE("the order of gradients costs two directions no time", "[stage_ranks]") {
  order_costs_no_time<Chimera>();
  order_costs_no_time<DualPipe>();
}

// A stage of twice the time on two ranks keeps up: the time of a pipeline of equal stages, but for
// the warm-up.
constexpr stage_ranks<3> doubled({1, 2, 1});
constexpr auto uneven = unequal_times(4, 8, {chunk_cost{1, 1, 1}, {2, 2, 2}, {1, 1, 1}});
constexpr auto in_turns = make_table<OneFOneB, 4, 8>(uneven, doubled);
static_assert(validate(uneven, in_turns).ok());
// M stages of 3 on the first rank, and the way down and back of the first micro-batch.
static_assert(simulate(uneven, in_turns).makespan < 8 * 6);
static_assert(simulate(uneven, in_turns).makespan >= 8 * 3 + 6 + 3);
static_assert(peak_in_flight(in_turns, 0) == 4 && peak_in_flight(in_turns, 1) == 2 &&
              peak_in_flight(in_turns, 2) == 2 && peak_in_flight(in_turns, 3) == 1);

TEST_CASE("replicas are drawn with a shade each", "[stage_ranks]") {
  auto const when = simulate(uneven, in_turns);
  drawings::drawing const d = drawings::of_table(uneven, in_turns, when);
  for (auto const& a : d.ranks[1].actions) CHECK(a.shade == 0);
  for (auto const& a : d.ranks[2].actions) CHECK(a.shade == 1);
  bool starts = false, ends = false;
  for (auto const& row : d.ranks)
    for (auto const& a : row.actions) {
      starts = starts || (a.critical && a.start == 0);
      ends = ends || (a.critical && a.end == when.makespan);
    }
  CHECK((starts && ends));
}
TEST_CASE("numbers that do not fit the stages are refused", "[stage_ranks]") {
  stage_ranks<2> const where({1, 2});
  auto const costs = std::vector<chunk_cost>(2);
  CHECK_THROWS_WITH(make_dynamic_table<OneFOneB>(run_time_problem{2, 2, 1, 0, costs}, where),
                    Catch::Contains("a chunk for each stage, and the ranks of all stages"));
  CHECK(validate(run_time_problem{3, 2, 1, 0, costs},
                 make_dynamic_table<OneFOneB>(run_time_problem{3, 2, 1, 0, costs}, where))
            .ok());
}
