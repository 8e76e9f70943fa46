// SPDX-License-Identifier: BSL-1.0
//
// Lower bounds under a memory limit: against exact optima, which another program has found, against
// what is proved on paper, and against the best orders that are published.
#include "catch.hpp"

#include <algorithm>
#include <pipe/schedule/certificate.hpp>
#include <pipe/schedule/dynamic_table.hpp>
#include <pipe/schedule/families/building_block.hpp>
#include <pipe/schedule/families/one_f_one_b.hpp>
#include <pipe/schedule/families/zb_v.hpp>
#include <pipe/schedule/families/zero_bubble.hpp>
#include <string>
#include <vector>

#include "optima.hpp"
#include "reference.hpp"

namespace {

using namespace pp;
using namespace pp::schedules;
using reference::many_costs;

using reference::read_optima;
using reference::solved;

TEST_CASE("no floor is above the exact optimum", "[floors]") {
  std::vector<solved> const all = read_optima();
  REQUIRE(all.size() >= 500);
  int limited = 0, proved = 0, two_ways = 0, proved_two_ways = 0;
  for (solved const& s : all) {
    flush_floor const floor = floor_of(s.problem, s.where);
    INFO("problem " << &s - all.data() << ": " << floor.stage_local_span << " and "
                    << floor.makespan << ", optimum " << s.best.stage_local_span << " and "
                    << s.best.makespan);
    REQUIRE(floor.stage_local_span <= s.best.stage_local_span);
    REQUIRE(floor.makespan <= s.best.makespan);
    if (s.problem.limit == 0) continue;
    bool const both = s.where == placement::bidirectional,
               is_proved = floor.stage_local_span == s.best.stage_local_span;
    (both ? two_ways : limited) += 1;
    (both ? proved_two_ways : proved) += is_proved;
  }
  INFO(proved << " of " << limited << ", " << proved_two_ways << " of " << two_ways);
  REQUIRE(2 * proved > limited);  // the floors are tight, too
  REQUIRE(5 * proved_two_ways > 2 * two_ways);
}

constexpr auto alone = [] {
  auto problem = equal_times(4, 8);
  problem.limit = 1;
  return floor_of(problem, placement::bidirectional);
}();
static_assert(alone.stage_local_span == 48);  // in a constant, too

TEST_CASE("a rank that micro-batches pass in both directions is idle in a small room", "[floors]") {
  auto problem = equal_times(4, 8);
  auto const bound = [&](long limit) {
    problem.limit = limit;
    return floor_of(problem, placement::bidirectional);
  };
  flush_floor const any = bound(0), wide = bound(8), narrow = bound(1);
  REQUIRE(any.stage_local_span == 3 * 8);
  REQUIRE(any.makespan == 3 * 8 + 1);
  REQUIRE(wide.makespan == any.makespan);
  REQUIRE(wide.stage_local_span == any.stage_local_span);
  // Four of chunk 0, each for 4 F, 4 B and W; four of chunk 3, each for F, B and W.
  REQUIRE(narrow.stage_local_span == 4 * 9 + 4 * 3);
  REQUIRE(narrow.span_by.why == floor_reason::area);
  for (long limit = 1; limit < 8; ++limit)
    REQUIRE(bound(limit).stage_local_span >= bound(limit + 1).stage_local_span);
  REQUIRE(bound(2).stage_local_span > any.stage_local_span);
}

TEST_CASE("a floor falls where the limit rises, to that of no limit", "[floors]") {
  for (solved s : read_optima()) {
    long const limit = s.problem.limit;
    s.problem.limit = 0;
    flush_floor const least = floor_of(s.problem, s.where);
    flush_floor above{LONG_MAX, LONG_MAX};
    for (long more : {limit, limit + 1, limit + 3, 10 * limit + 1000}) {
      if (more == 0) continue;
      s.problem.limit = more;
      flush_floor const floor = floor_of(s.problem, s.where);
      REQUIRE(floor.makespan <= above.makespan);
      REQUIRE(floor.stage_local_span <= above.stage_local_span);
      above = floor;
      REQUIRE(floor.makespan >= least.makespan);
      REQUIRE(floor.stage_local_span >= least.stage_local_span);
    }
    REQUIRE(above.makespan == least.makespan);
    REQUIRE(above.stage_local_span == least.stage_local_span);
  }
}

/// F = B = W = 1 on a V, k chunks of memory.
constexpr auto unit_vee(int p, int m, int k) {
  auto problem = equal_times(p, m, {}, 0, 2);
  problem.limit = k;
  return problem;
}

TEST_CASE("the memory curve of a V is optimal for any number of micro-batches", "[floors]") {
  // Qi et al., Pipeline Parallelism with Controllable Memory, 2024: the authors' orders are idle
  // for 6p - 1 - 3k on the slowest rank where they exist. No order with few micro-batches is: rank
  // 0 has only its m Fs until the first micro-batch has come down and up to it.
  for (int p = 3; p <= 24; ++p)
    for (int m : {p, p + 1, 2 * p - 1, 2 * p, 5 * p})
      for (int k = p; k <= 2 * p - 2; ++k)
        REQUIRE(floor_of(unit_vee(p, m, k), placement::vee).stage_local_span - 6 * m ==
                std::max(6 * p - 1 - 3 * k, 2 * p - 1 - m));
}
constexpr auto in_five_chunks = floor_of(unit_vee(5, 5, 5), placement::vee);
static_assert(in_five_chunks.stage_local_span == 6 * 5 + 14);

/// Micro-seconds of the zero-bubble paper's models, and what they add to the memory: bytes per
/// sample and token of 1024.
struct published {
  int heads, width, micro_batches;
  chunk_cost times;
  long hop;
};
constexpr published rows[] = {
    {24, 2304, 24, {18522, 18086, 9337}, 601},  {24, 2304, 32, {18513, 18086, 9331}, 626},
    {24, 2304, 64, {18546, 18097, 9321}, 762},  {32, 4096, 24, {29718, 29444, 19927}, 527},
    {32, 4096, 32, {29802, 29428, 19530}, 577}, {32, 4096, 64, {29935, 29621, 19388}, 535},
};

TEST_CASE("no order in the memory of 1F1B is better than ZB-H1's at the published times",
          "[floors]") {
  for (published const& row : rows)
    for (int p : {8, 16, 24, 32}) {
      long const added = 34L * row.width + 5L * row.heads * 1024, kept_for_w = 32L * row.width;
      chunk_cost each = row.times;
      each.memory = {added, kept_for_w - added, -kept_for_w};
      auto problem =
          equal_times(p, 3 * p > row.micro_batches ? 3 * p : row.micro_batches, each, row.hop);
      auto const table = make_dynamic_table<ZeroBubbleH1>(problem);
      certificate const in_its_own = certify(problem, table);
      REQUIRE(in_its_own.memory == p * added);
      REQUIRE(in_its_own.proved());
      REQUIRE(in_its_own.proved(objective::makespan));
      problem.limit = p * added;
      REQUIRE(certify(problem, table).floor.stage_local_span == in_its_own.floor.stage_local_span);
      // With more memory there may be better ones.
      problem.limit = 2 * p * added;
      certificate const in_more = certify(problem, table);
      REQUIRE_FALSE(in_more.proved());
      REQUIRE(in_more.gap() > 0);
      REQUIRE(in_more.gap_share() ==
              Approx(double(in_more.gap()) / double(in_more.achieved.stage_local_span)));
    }
}

TEST_CASE("a floor says which rank bounds it, and what keeps this rank", "[floors]") {
  using enum floor_reason;
  auto const bound = [](auto problem, placement where, long limit) {
    problem.limit = limit;
    flush_floor const floor = floor_of(problem, where);
    REQUIRE(floor.makespan_by.time == floor.makespan);
    REQUIRE(floor.span_by.time == floor.stage_local_span);
    return floor;
  };
  auto const straight = equal_times(4, 16);
  REQUIRE(bound(straight, placement::straight, 0).makespan_by.rank == 3);
  REQUIRE(bound(straight, placement::straight, 0).makespan_by.why == work);
  REQUIRE(bound(equal_times(4, 8, {5, 5, 1}), placement::straight, 0).makespan_by.why == ways);
  REQUIRE(bound(straight, placement::straight, 4).span_by.rank == 0);
  REQUIRE(bound(straight, placement::straight, 4).span_by.why == warm_up);
  REQUIRE(bound(straight, placement::straight, 1).span_by.why == turns);
  REQUIRE(bound(unit_vee(5, 5, 5), placement::vee, 5).span_by.rank == 4);
  REQUIRE(bound(unit_vee(5, 5, 5), placement::vee, 5).span_by.why == last_forward);
  int areas = 0;
  for (solved const& s : read_optima()) {
    flush_floor const floor = bound(s.problem, s.where, s.problem.limit);
    REQUIRE(floor.span_by.rank >= 0);
    REQUIRE(floor.span_by.rank < s.problem.ranks);
    areas += floor.span_by.why == area;
  }
  REQUIRE(areas > 0);
}

TEST_CASE("what certificates say of orders that are not the best", "[floors]") {
  auto const problem = equal_times(4, 16, {2, 2, 2});
  REQUIRE(certify(problem, make_dynamic_table<ZeroBubbleH1>(problem)).proved());
  REQUIRE_FALSE(certify(problem, make_dynamic_table<OneFOneB>(problem)).proved());
  auto const folded = equal_times(4, 16, {2, 2, 2}, 0, 2);
  REQUIRE(certify(folded, make_dynamic_table<ZeroBubbleV>(folded)).proved());
  certificate const half = certify(folded, make_dynamic_table<VHalf>(folded));
  REQUIRE(half.memory == 6);
  REQUIRE(half.proved());  // idle for 6p - 1 - 3k = 5 chunk actions
}

}  // namespace
