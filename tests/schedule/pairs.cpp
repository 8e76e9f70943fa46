// SPDX-License-Identifier: BSL-1.0
//
// Pairs: a forward and a backward of different micro-batches that run as one action.
#include "catch.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <pipe/schedule/boundary_slots.hpp>
#include <pipe/schedule/catalog/torch_csv.hpp>
#include <pipe/schedule/communication.hpp>
#include <pipe/schedule/critical_path.hpp>
#include <pipe/schedule/families/dual_pipe.hpp>
#include <pipe/schedule/families/eager.hpp>
#include <pipe/schedule/families/interleaved.hpp>
#include <pipe/schedule/families/paired.hpp>
#include <pipe/schedule/families/repeated.hpp>
#include <pipe/schedule/period.hpp>
#include <pipe/schedule/shared_weights.hpp>
#include <pipe/schedule/validate.hpp>

#include "reference.hpp"
#include "rendezvous.hpp"

namespace {

using namespace pp;
using namespace pp::schedules;
using namespace pp::detail;
using enum action_kind;
using reference::dice;

template <class Table>
int pairs_of(Table const& table, int rank) {
  int count = 0;
  for (int i = 0; i < table.size(rank); ++i) count += table.at(rank, i).with_next;
  return count;
}

template <class Policy>
problem<> problem_of(int ranks, int micro_batches, chunk_cost const& each, long hop = 0) {
  return {ranks, chunks_for(Policy::where, ranks, Policy::chunks_per_rank), micro_batches, hop,
          same_cost{each}};
}

/// Start and end of a pair, or of an action that is in none.
template <class Table, class Rows>
time_span whole(Table const& table, timeline<Rows> const& when, int rank, int i) {
  int const first = is_second(table, rank, i) ? i - 1 : i,
            last = first + table.at(rank, first).with_next;
  return {when.spans.at(rank, first).start, when.spans.at(rank, last).end};
}

/// Every fact of a timeline from its definition: a pair begins when both inputs are there and its
/// rank is free, takes its time, and only its end makes results.
template <class Table>
void require_timeline(problem<> const& problem, Table const& table) {
  auto const when = simulate(problem, table);
  REQUIRE(when.complete);
  for (int rank = 0; rank < table.ranks(); ++rank)
    for (int i = 0; i < table.size(rank); ++i) {
      if (is_second(table, rank, i)) continue;
      action const a = table.at(rank, i);
      long ready = i == 0 ? 0 : when.spans.at(rank, i - 1).end;
      for (int k = i; k <= i + a.with_next; ++k)
        if (auto const from = source_of(problem, table, table.at(rank, k)); from.rank >= 0) {
          action const reader = table.at(rank, k);
          ready = std::max(ready, whole(table, when, from.rank, from.position).end +
                                      problem.hop_time(from.rank, rank,
                                                       reader.kind == forward ? reader.chunk - 1
                                                                              : reader.chunk));
        }
      time_span const span = whole(table, when, rank, i);
      REQUIRE(span.start == ready);
      REQUIRE(span.end - span.start ==
              (a.with_next ? problem.time_of_pair(a, table.at(rank, i + 1)) : problem.time(a)));
    }
}

template <class Policy>
void require_pairs(int ranks, int micro_batches, chunk_cost const& each, long hop) {
  INFO(Policy::name << " " << ranks << " " << micro_batches);
  auto const problem = problem_of<Policy>(ranks, micro_batches, each, hop);
  auto const table = make_dynamic_table<Policy>(problem);
  REQUIRE(validate(problem, table).ok());
  require_timeline(problem, table);
  auto const when = simulate(problem, table);
  // Slots as the timeline uses them, and transfers by rendezvous.
  std::vector<slot_count> slots;
  for (int c = 0; c + 1 < problem.chunks; ++c)
    slots.push_back(boundary_slots(problem, table, when, c));
  REQUIRE(simulate(problem, table, slots).makespan == when.makespan);
  REQUIRE(check_rendezvous(problem, communicate(problem, table, slots)).ok());
  // The critical path has no gap but hops.
  long begun = when.makespan;
  for_each_critical(problem, table, when, [&](int rank, int i) {
    time_span const span = when.spans.at(rank, i);
    REQUIRE((begun - span.end == 0 || begun - span.end == hop));
    begun = span.start;
  });
  REQUIRE(begun == 0);
  // The period is the pace of many steps, with and without slots.
  auto const pace = [&](auto const& with) {
    step_period const period = period_of(problem, table, with);
    auto const until = [&](int steps) {
      return simulate(repeated(problem, steps), repeated(problem, table, steps), with).makespan;
    };
    REQUIRE(12 % period.steps == 0);
    REQUIRE(until(36) - until(24) == 12 / period.steps * period.time);
  };
  pace(unbounded_slots{});
  pace(slots);
  // PyTorch's form keeps the pairs.
  auto const again = read_torch_csv(torch_csv(table));
  REQUIRE(again.table.items == table.items);
}

TEST_CASE("pairs in time, memory, slots, transfers, period and text", "[pairs]") {
  chunk_cost apart{2, 3, 2}, half = apart, most{7, 5, 3};
  half.hidden = 1, most.hidden = 7;
  for (chunk_cost const& each : {apart, half, most})
    for (long const hop : {0L, 2L}) {
      for (int const p : {2, 4, 6}) {
        require_pairs<Paired<DualPipe>>(p, 2 * p, each, hop);
        require_pairs<Paired<DualPipe>>(p, 2 * p + 6, each, hop);
      }
      for (int const p : {1, 2, 3})
        for (int const m : {2 * p, 2 * p + 3}) require_pairs<Paired<DualPipeV>>(p, m, each, hop);
      for (int const p : {1, 2, 4})
        for (int const m : {1, 5, 12}) {
          require_pairs<Paired<OneFOneB>>(p, m, each, hop);
          require_pairs<Paired<EagerOneFOneB>>(p, m, each, hop);
          require_pairs<Paired<Interleaved<2>>>(p, 2 * p, each, hop);
        }
    }
}

TEST_CASE("DualPipe's published bubble is the idle time of the ranks at the turn", "[pairs]") {
  struct times {
    long f, b, w;
  };
  for (times const& t : {times{4, 4, 2}, times{4, 4, 3}, times{4, 4, 4}, times{3, 5, 2}})
    for (long const hidden : {0L, 1L, t.f}) {
      long const f = t.f, b = t.b, w = t.w;
      chunk_cost const each{f, b, w, {}, 0, hidden};
      auto const require_idle = [&](auto const& problem, auto const& table, int turn, int half) {
        long const pair = problem.time_of_pair({forward, 0, 1}, {backward, 0, 0}),
                   published = (half - 1) * (pair + (b + w) - 3 * w);
        INFO(b << " " << w << " " << hidden << " " << problem.ranks << " "
               << problem.micro_batches);
        auto const when = simulate(problem, table);
        REQUIRE(when.idle(turn) <= published);
        if (f == b) REQUIRE(when.idle(turn) == published);
        for (int rank = 0; rank < problem.ranks; ++rank)
          REQUIRE(when.idle(rank) <= when.idle(turn));
      };
      for (int const p : {2, 4, 6, 8})
        for (int const m : {2 * p, 2 * p + 2, 5 * p}) {
          auto const dual = problem_of<DualPipe>(p, m, each);
          require_idle(dual, make_dynamic_table<Paired<DualPipe>>(dual), p / 2, p / 2);
          auto shared = dynamic_table_on<shared_weights>(p, shared_weights{DualPipe::where});
          Paired<DualPipe>::fill(dual, shared);
          REQUIRE(validate(dual, shared).ok());
          require_idle(dual, shared, p / 2, p / 2);
          auto const folded = problem_of<DualPipeV>(p, m, each);
          require_idle(folded, make_dynamic_table<Paired<DualPipeV>>(folded), p - 1, p);
        }
    }
}

TEST_CASE("the authors' pairs, and those of a family without any", "[pairs]") {
  auto const dual = make_dynamic_table<Paired<DualPipe>>(problem_of<DualPipe>(8, 20, {}));
  for (int rank = 0; rank < 8; ++rank) {
    int const at = std::min(rank, 7 - rank), at_turn = at == 3;
    REQUIRE(pairs_of(dual, rank) == 2 * (20 / 2 - 8 + at + 1) - at_turn + (4 - at - 1));
  }
  auto const plain = make_dynamic_table<DualPipe>(problem_of<DualPipe>(8, 20, {}));
  for (int rank = 0; rank < 8; ++rank) REQUIRE(pairs_of(plain, rank) == 0);

  // A deep warm-up keeps the pace, and a pair that hides something makes it faster; in the order of
  // 1F1B every pair waits for one on the next rank.
  for (long const hidden : {0L, 1L}) {
    auto const problem = problem_of<OneFOneB>(4, 24, {2, 2, 2, {}, 0, hidden});
    auto const work = [&]<class Policy>(Policy) {
      auto const table = make_dynamic_table<Policy>(problem);
      return simulate(problem, table).makespan;
    };
    REQUIRE(work(EagerOneFOneB{}) == 27 * 6);
    REQUIRE(work(Paired<EagerOneFOneB>{}) == 27 * 6 - 23 * hidden);
    REQUIRE(work(Paired<OneFOneB>{}) > 40 * (6 - hidden));
    auto const table = make_dynamic_table<Paired<EagerOneFOneB>>(problem);
    for (int rank = 0; rank < 4; ++rank)
      REQUIRE(peak_in_flight(table, rank) == 2 * (4 - rank));  // one more than without pairs
  }
}

TEST_CASE("what is no pair is refused, and a pair that waits for itself is found", "[pairs]") {
  auto const refused = [](std::vector<std::vector<action>> rows) {
    problem<> const problem{int(rows.size()), int(rows.size()), 2};
    auto table = dynamic_table(int(rows.size()));
    table.items = std::move(rows);
    verdict const v = validate(problem, table);
    return std::pair{v.what, v.rank};
  };
  using faults = std::pair<fault, int>;
  auto const first = [](int mb) { return action{forward, 0, mb, 0, true}; };
  REQUIRE(refused({{{forward, 0, 0}, first(1), {backward, 0, 0}, {backward, 0, 1}}}) ==
          faults{fault::none, -1});
  REQUIRE(refused({{{forward, 0, 0}, {backward, 0, 0}, first(1), {backward, 0, 1}}}) ==
          faults{fault::not_a_pair, 0});
  REQUIRE(refused({{first(0), {forward, 0, 1}, {backward, 0, 0}, {backward, 0, 1}}}) ==
          faults{fault::not_a_pair, 0});
  REQUIRE(
      refused({{{forward, 0, 0}, {backward, 0, 0}, {forward, 0, 1}, {backward, 0, 1, 0, true}}}) ==
      faults{fault::not_a_pair, 0});
  // F of micro-batch 1 and B of 0 on rank 0, where rank 1 begins with micro-batch 1 ...
  REQUIRE(refused({{{forward, 0, 0}, first(1), {backward, 0, 0}, {backward, 0, 1}},
                   {{forward, 1, 0}, {backward, 1, 0}, {forward, 1, 1}, {backward, 1, 1}}}) ==
          faults{fault::none, -1});
  // ... and where it has F of 1 before B of 0: apart that would run.
  std::vector<std::vector<action>> waits = {
      {{forward, 0, 0}, first(1), {backward, 0, 0}, {backward, 0, 1}},
      {{forward, 1, 0}, {forward, 1, 1}, {backward, 1, 0}, {backward, 1, 1}}};
  REQUIRE(refused(waits) == faults{fault::deadlock, 0});
  waits[0][1].with_next = false;
  REQUIRE(refused(waits) == faults{fault::none, -1});
  // A pair whose backward needs a later action of its own rank.
  REQUIRE(refused({{first(1), {backward, 0, 0}, {forward, 0, 0}, {backward, 0, 1}}}).first ==
          fault::out_of_order);
}

}  // namespace
