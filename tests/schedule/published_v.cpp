// SPDX-License-Identifier: BSL-1.0
//
// The families on a V against the orders that their authors publish, at real times: F, B, W and
// hops of any length, ranks that differ, in the same memory.
#include "catch.hpp"
#include <pipe/schedule/families/v_greedy.hpp>

#include "published_v.hpp"
#include "reference.hpp"

namespace {

using namespace pp;
using namespace pp::schedules;
using namespace pp::detail;
using reference::dice;

run_time_problem random_problem(dice& roll, int most_ranks) {
  int const p = roll(2, most_ranks);
  run_time_problem problem{p, 2 * p, roll(1, 6 * p), roll(0, 2) == 0 ? 0 : roll(1, 12), {}};
  constexpr memory_change memories[] = {{1, 0, -1}, {100, -63, -37}, {34, -17, -17}, {10, -2, -8}};
  memory_change const memory = memories[roll(0, 3)];
  bool const equal = roll(0, 2) > 0;
  chunk_cost each{roll(5, 60), roll(5, 60), roll(3, 60), memory};
  for (int c = 0; c < problem.chunks; ++c) {
    if (!equal && (c < p || roll(0, 3) == 0))
      each = {roll(5, 60), roll(5, 60), roll(3, 60), memory};
    else if (!equal)
      each = problem.costs[std::size_t(2 * p - 1 - c)];
    problem.costs.push_back(each);
  }
  return problem;
}

/// The times of a table, less is better; none for a table that needs more memory than `most` on a
/// rank.
std::optional<std::pair<long, long>> times_of(run_time_problem const& problem,
                                              dynamic_table const& table, long most) {
  INFO(validate(problem, table).text());
  REQUIRE(validate(problem, table).ok());
  for (int rank = 0; rank < problem.ranks; ++rank)
    if (peak_memory(problem, table, rank) > most) return std::nullopt;
  auto const when = simulate(problem, table);
  return std::pair{when.stage_local_span(), when.makespan};
}

struct tally {
  int wins = 0, ties = 0, losses = 0;
};

/// Compares a family, in the memory of `stages` stages, with the best of published orders.
template <class Policy>
void compare(run_time_problem const& problem, int stages,
             std::vector<published::rows> const& orders, tally& count) {
  long const most = 2 * stages * problem.cost(0).memory.forward;
  auto const mine = times_of(problem, make_dynamic_table<Policy>(problem), most);
  REQUIRE(mine.has_value());
  std::optional<std::pair<long, long>> best;
  for (auto const& order : orders)
    if (auto const theirs = times_of(problem, published::table_of(problem.ranks, order), most))
      if (!best || *theirs < *best) best = theirs;
  if (!best) return;
  INFO(Policy::name << ", p " << problem.ranks << ", m " << problem.micro_batches << ", span "
                    << mine->first << ", published " << best->first);
  CHECK(*mine <= *best);
  ++(mine->first < best->first    ? count.wins
     : mine->first == best->first ? count.ties
                                  : count.losses);
}

std::vector<published::rows> greedy_orders(run_time_problem const& problem) {
  std::vector<published::rows> orders;
  long const limit = 2 * problem.ranks * problem.cost(0).memory.forward;
  for (bool fill_f : {false, true})
    for (bool fill_b : {false, true})
      if (auto order = published::greedy(problem, limit, fill_f, fill_b).order())
        orders.push_back(std::move(*order));
  return orders;
}

void compare_with_published(unsigned seed, int problems, int most_ranks) {
  dice roll(seed);
  tally least, half, zero;
  for (int i = 0; i < problems; ++i) {
    auto const problem = random_problem(roll, most_ranks);
    int const p = problem.ranks, m = problem.micro_batches;
    compare<VMin>(problem, (p + 4) / 3, {published::block(p, m, false).order()}, least);
    compare<VHalf>(problem, (p + 2) / 2, {published::block(p, m, true).order()}, half);
    compare<ZeroBubbleV>(problem, p, greedy_orders(problem), zero);
  }
  for (auto const& [name, n] : {std::pair{"v-min", least}, {"v-half", half}, {"zb-v", zero}}) {
    INFO(name << ": " << n.wins << " wins, " << n.ties << " ties, " << n.losses << " losses");
    CHECK(n.losses == 0);
    CHECK(n.wins >= problems / 6);
    CHECK(n.wins + n.ties >= problems * 3 / 4);  // the greedy rules have no order for every problem
  }
}

TEST_CASE("no family on a V loses to its authors' orders at real times", "[families]") {
  compare_with_published(41, 80, 8);
}

TEST_CASE("no family on a V loses to its authors' orders on more ranks", "[families][long]") {
  compare_with_published(42, 240, 12);
}

published::rows rows_of(v_order const& order) {
  published::rows made;
  for (int rank = 0; rank < order.ranks(); ++rank) {
    auto& row = made.emplace_back();
    for (int i = 0; i < order.size(rank); ++i) {
      action const a = order.at(rank, i);
      int const visit = visit_of(rank, a);
      row.push_back({visit < w_up ? visit : visit - w_up + b_up, a.micro_batch, visit >= w_up});
    }
  }
  return made;
}

TEST_CASE("the blocks and the greedy orders of the families are the published ones", "[families]") {
  for (int p = 1; p <= 7; ++p)
    for (int m = 1; m <= 3 * p + 12; m += p < 4 ? 1 : 3)
      for (bool half : {false, true}) {
        auto mine = v_order(p, m);
        if (half)
          fill_as_published(equal_times(p, m, {}, 0, 2), mine, VHalf::block(p));
        else
          fill_as_published(equal_times(p, m, {}, 0, 2), mine, VMin::block(p));
        INFO("p " << p << ", m " << m << ", half " << half);
        REQUIRE((rows_of(mine) == published::block(p, m, half).order()));
      }
  dice roll(43);
  int some = 0;
  for (int i = 0; i < 60; ++i) {
    auto const problem = random_problem(roll, 7);
    long const limit = (2 * problem.ranks + roll(-1, 1)) * problem.cost(0).memory.forward;
    for (bool fill_f : {false, true})
      for (bool fill_b : {false, true}) {
        auto mine = v_order(problem.ranks, problem.micro_batches);
        bool const any = fill_greedily(problem, mine, {fill_f, fill_b}, [=](int) { return limit; });
        auto const theirs = published::greedy(problem, limit, fill_f, fill_b).order();
        REQUIRE(any == theirs.has_value());
        some += any;
        REQUIRE((any ? rows_of(mine) == *theirs : mine.size(0) == 0));
      }
  }
  REQUIRE(some >= 100);
}

/// A family's table that the compiler makes.
template <class Policy>
struct constant {
  static constexpr auto work = equal_times(4, 8, {31, 29, 17, {100, -63, -37}}, 4, 2);
  static constexpr auto table = make_table<Policy, 4, 8>(work);
  static constexpr auto when = simulate(work, table);
};

TEST_CASE("the compiler makes no worse tables than the authors' programs", "[families]") {
  run_time_problem const problem{4, 8, 8, 4,
                                 std::vector<chunk_cost>(8, constant<VMin>::work.cost(0))};
  auto const check = [&]<class Policy>(Policy, std::vector<published::rows> const& orders) {
    REQUIRE(validate(constant<Policy>::work, constant<Policy>::table).ok());
    REQUIRE(!orders.empty());
    for (auto const& order : orders)
      REQUIRE(constant<Policy>::when.stage_local_span() <=
              simulate(problem, published::table_of(4, order)).stage_local_span());
  };
  check(VMin{}, {published::block(4, 8, false).order()});
  check(VHalf{}, {published::block(4, 8, true).order()});
  check(ZeroBubbleV{}, greedy_orders(problem));
}

TEST_CASE("an order without room is not an order", "[families]") {
  auto const problem = equal_times(4, 6, {3, 2, 4}, 1, 2);
  auto order = v_order(4, 6);
  for (int chunks = 0; chunks < 7; ++chunks) {
    REQUIRE(!fill_greedily(problem, order, {}, [=](int) { return long(chunks); }));
    REQUIRE(order.size(0) == 0);
  }
  // Played in any way, an order stays within the memory, or is given up.
  auto fixed = v_order(4, 6);
  push_zb_v(problem, fixed);
  int given_up = 0, played = 0;
  for (int chunks = 1; chunks <= 8; ++chunks) {
    auto const room = [=](int) { return long(chunks); };
    auto play = v_play(problem, room);
    for (int delay : {0, 1, 2, v_play_rule::any_length})
      for (bool weights_first : {false, true}) {
        order.clear();
        if (!play.fill(fixed, {delay, weights_first}, order)) {
          ++given_up;
          continue;
        }
        ++played;
        auto const found = score_of(problem, order, room);
        REQUIRE(found.excess == 0);
        auto table = dynamic_table(4, placement::vee);
        for (int rank = 0; rank < 4; ++rank)
          for (int at = 0; at < order.size(rank); ++at) table.push(rank, order.at(rank, at));
        REQUIRE(validate(problem, table).ok());
        auto const when = simulate(problem, table);
        REQUIRE(found.span == when.stage_local_span());
        REQUIRE(found.makespan == when.makespan);
      }
  }
  REQUIRE(given_up > 0);
  REQUIRE(played >= 8);
}

}  // namespace
