// SPDX-License-Identifier: BSL-1.0
//
// The search against what is published, against the hand-made families and against the judges of
// schedules.
#include "catch.hpp"

#include <algorithm>
#include <pipe/schedule/search/search.hpp>

#include "reference.hpp"

namespace {

using namespace pp;
using namespace pp::schedules;
using namespace pp::detail;
using reference::dice;
using reference::many_costs;

/// A line of the zero-bubble paper's tables, with its conventions: microseconds, and memory in
/// bytes per sample and token of 1024.
struct published {
  int heads, width, ranks, micro_batches;
  chunk_cost times;
  long hop;
  double zb_1p, zb_2p, best_2p;

  problem<> question(double limit) const {
    long const added = 34L * width + 5L * heads * 1024, kept_for_w = 32L * width;
    chunk_cost each = times;
    each.memory = {added, kept_for_w - added, -kept_for_w};
    auto answer = equal_times(ranks, micro_batches, each, hop);
    answer.limit = static_cast<long>(limit * ranks * static_cast<double>(added) + 0.5);
    return answer;
  }
};

constexpr published rows[] = {
    {24, 2304, 8, 24, {18522, 18086, 9337}, 601, .1585, .0433, .0433},
    {24, 2304, 8, 32, {18513, 18086, 9331}, 626, .1242, .0039, .0017},
    {24, 2304, 8, 64, {18546, 18097, 9321}, 762, .0674, .0026, .0011},
    {32, 4096, 8, 24, {29718, 29444, 19927}, 527, .1323, .0029, .0012},
    {32, 4096, 8, 32, {29802, 29428, 19530}, 577, .1045, .0022, .0009},
    {32, 4096, 8, 64, {29935, 29621, 19388}, 535, .0554, .0010, .0004},
};
constexpr double rounding = .00005;  // they are published with four digits

template <class Policy, class Problem>
double stage_local_bubble(Problem const& problem) {
  auto const table = make_dynamic_table<Policy>(problem);
  INFO(validate(problem, table).text());
  REQUIRE(validate(problem, table).ok());
  REQUIRE(certify(problem, table).gap() >= 0);
  return simulate(problem, table).bubble_by_stage_local_span();
}

TEST_CASE("every published bubble is reached or beaten", "[search]") {
  for (published const& row : rows) {
    INFO("width " << row.width << ", m " << row.micro_batches);
    auto any_limit = row.question(0);
    REQUIRE(any_limit.limit == 0);
    REQUIRE(stage_local_bubble<ZeroBubble1P>(any_limit) <= row.zb_1p + rounding);
    REQUIRE(stage_local_bubble<ZeroBubble2P>(any_limit) <= row.zb_2p + rounding);
    REQUIRE(stage_local_bubble<Searched<>>(row.question(2)) <= row.best_2p + rounding);
  }
}

TEST_CASE("the bubble against the memory limit is never above the published curve", "[search]") {
  constexpr double curve[][2] = {{1, .1045}, {1.25, .0645},  {1.5, .0363}, {1.75, .0138},
                                 {2, .0022}, {2.625, .0003}, {2.75, 0}};
  double before = 1;
  for (auto const& [limit, bubble] : curve) {
    INFO("limit " << limit);
    double const found = stage_local_bubble<Searched<>>(rows[4].question(limit));
    REQUIRE(found <= bubble + rounding);
    REQUIRE(found <= before);
    before = found;
  }
}

TEST_CASE("the trade-off of the V placement between memory and idle time", "[search][long]") {
  auto const idle = [](int p, int m, int limit) {
    auto problem = equal_times(p, m, {}, 0, 2);
    problem.limit = limit;
    auto const table = make_dynamic_table<Searched<0, 1, placement::vee>>(problem);
    REQUIRE(validate(problem, table).ok());
    return simulate(problem, table).stage_local_span() - 6 * m;
  };
  for (int m : {8, 16, 32, 64})
    for (auto const& [chunks, ticks] : {std::pair{4, 11}, {5, 8}, {6, 5}, {7, 3}, {8, 0}}) {
      INFO("m " << m << ", peak " << chunks);
      REQUIRE(idle(4, m, chunks) <= ticks);
    }
  for (auto const& [chunks, ticks] : {std::pair{8, 25}, {10, 17}, {12, 11}, {14, 6}, {16, 0}}) {
    INFO("peak " << chunks);
    REQUIRE(idle(8, 16, chunks) <= ticks);
  }
  for (int m : {8, 32, 64})
    for (auto const& [chunks, ticks] : {std::pair{8, 26}, {10, 17}, {13, 10}}) {
      INFO("m " << m << ", peak " << chunks);
      REQUIRE(idle(8, m, chunks) <= ticks);
    }
}

TEST_CASE("more micro-batches do not make the idle time grow", "[search][long]") {
  auto const idle = [](auto problem, int m) {
    problem.micro_batches = m;
    auto const table = make_dynamic_table<Searched<>>(problem);
    REQUIRE(validate(problem, table).ok());
    chunk_cost const& each = problem.cost(0);
    return simulate(problem, table).stage_local_span() -
           m * (each.forward + each.backward_input + each.backward_weight);
  };
  struct {
    int ranks;
    chunk_cost each;
    long hop, limit, most;
  } const cases[] = {{8, {30, 29, 20, {20, -12, -8}}, 1, 200, 157},
                     {4, {20, 19, 10, {20, -12, -8}}, 1, 100, 50},
                     {8, {20, 19, 10, {20, -12, -8}}, 1, 240, 67},
                     {8, {10, 20, 10, {20, -12, -8}}, 2, 200, 148}};
  for (auto const& c : cases)
    for (int m : {32, 64, 128}) {
      INFO("p " << c.ranks << ", m " << m << ", limit " << c.limit);
      auto problem = equal_times(c.ranks, m, c.each, c.hop);
      problem.limit = c.limit;
      REQUIRE(idle(problem, m) <= c.most);
    }
}

TEST_CASE("an order whose period is repeated is an order of more micro-batches", "[search]") {
  auto const many = equal_times(4, 22);
  search_problem const few_question(many, placement::straight, objective::makespan, 4, 12),
      question(many, placement::straight, objective::makespan, 4);
  search_actions const few_actions(few_question), actions(question);
  search_order order(few_actions), longer(actions);
  ZeroBubbleH1::fill(few_question, order);
  auto periods = order_periods(order, 4, 12);
  periods.set_length(2);
  REQUIRE(periods.begin_at(5));
  periods.repeat(5, longer);
  REQUIRE(longer.fits());
  REQUIRE(order_times(actions).play(longer).worst ==
          order_times(few_actions).play(order).worst + 30);
  auto table = dynamic_table(4);
  for (int rank = 0; rank < 4; ++rank)
    for (int i = 0; i < longer.size(rank); ++i) table.push(rank, longer.at(rank, i));
  REQUIRE(validate(many, table).ok());
}

/// A problem with times of the same order, memory that is given back by B and W, and a limit that
/// is sometimes tight.
many_costs limited_problem(dice& roll, placement where, int most_ranks, int most_micro_batches) {
  auto problem = reference::random_problem(roll, where, most_ranks, most_micro_batches, 0);
  int const held = where == placement::straight ? 1 : 2;
  problem.chunks = held * problem.ranks;
  problem.costs.clear();
  long most = 0;
  for (int chunk = 0; chunk < problem.chunks; ++chunk) {
    int const added = roll(1, 20), b = roll(-added, 3);
    problem.costs.push_back({roll(0, 9), roll(0, 9), roll(0, 9), {added, b, -added - b}});
    most = std::max<long>(most, added + std::max(0, b));
  }
  if (roll(0, 3) > 0) problem.limit = most * held * roll(1, 4 * problem.ranks) / 2;
  return problem;
}

template <class Policy>
void require_not_worse(many_costs const& problem, certificate const& found, objective want) {
  if (why_refused<Policy>(problem) != nullptr) return;
  auto const table = make_dynamic_table<Policy>(problem);
  if (!validate(problem, table).ok()) return;
  INFO(Policy::name);
  REQUIRE(found.time(want) <= certify(problem, table).time(want));
}

constexpr long little = 200'000;  // effort for problems by the hundred

TEST_CASE(
    "any problem: a valid order within the limit, above the floors, not worse than any family",
    "[search]") {
  dice roll(21);
  int limited = 0, refused = 0;
  for (placement where : {placement::straight, placement::vee, placement::loop})
    for (int i = 0; i < 170; ++i) {
      auto const problem = limited_problem(roll, where, 12, 24);
      auto const want = roll(0, 1) ? objective::makespan : objective::stage_local_span;
      long const limit = problem.limit > 0 ? problem.limit : search_options::no_limit;
      INFO("p " << problem.ranks << ", m " << problem.micro_batches << ", limit " << problem.limit);
      auto table = dynamic_table(problem.ranks, where);
      search(problem, table, {want, limit, little});
      if (table.size(0) == 0) {
        search_problem const question(problem, where, want, limit);
        REQUIRE(!planner(question).possible());
        ++refused;
        continue;
      }
      limited += problem.limit > 0;
      REQUIRE(validate(problem, table).ok());
      for (int rank = 0; rank < problem.ranks; ++rank)
        REQUIRE(peak_memory(problem, table, rank) <= limit);
      auto const found = certify(problem, table);
      REQUIRE(found.gap(objective::makespan) >= 0);
      REQUIRE(found.gap(objective::stage_local_span) >= 0);
      if (where == placement::straight) {
        require_not_worse<GPipe>(problem, found, want);
        require_not_worse<OneFOneB>(problem, found, want);
        require_not_worse<EagerOneFOneB>(problem, found, want);
        require_not_worse<ZeroBubbleH1>(problem, found, want);
        require_not_worse<ZeroBubbleH2>(problem, found, want);
      } else if (where == placement::loop) {
        require_not_worse<Interleaved<2>>(problem, found, want);
        require_not_worse<GroupedInterleaved<2>>(problem, found, want);
        require_not_worse<LoopedBFS<2>>(problem, found, want);
      } else {
        require_not_worse<Hanayo<>>(problem, found, want);
        require_not_worse<ZeroBubbleV>(problem, found, want);
        require_not_worse<VHalf>(problem, found, want);
        require_not_worse<VMin>(problem, found, want);
      }
    }
  REQUIRE(limited > 200);
  REQUIRE(refused > 0);
}

TEST_CASE("a plan plays as the simulator says, whatever the plan", "[search]") {
  dice roll(22);
  int whole = 0, stuck = 0;
  for (placement where : {placement::straight, placement::vee, placement::loop})
    for (int i = 0; i < 200; ++i) {
      auto const problem = limited_problem(roll, where, 6, 8);
      long const limit = problem.limit > 0 ? problem.limit : search_options::no_limit;
      search_problem const question(problem, where, objective::makespan, limit);
      planner const plans(question);
      if (!plans.possible()) continue;
      auto x = plan(problem.chunks);
      for (int visit = 0; visit < 2 * problem.chunks; ++visit) x.gap.item[visit] = roll(0, 60);
      x.period = 1 + roll(0, 2 * static_cast<int>(plans.busiest()) * planner::parts);
      x.rules = {roll(0, 1) == 1, roll(0, 1) == 1, roll(0, 3),
                 roll(0, 9),      roll(0, 9),      roll(0, 1) == 1};
      auto table = dynamic_table(problem.ranks, where);
      std::vector<std::vector<long>> starts(static_cast<std::size_t>(problem.ranks));
      bool const ended = plans.play(x, [&](int rank, action const& a, long start, long end) {
        REQUIRE(end == start + problem.time(a));
        table.push(rank, a);
        starts[static_cast<std::size_t>(rank)].push_back(start);
        return true;
      });
      (ended ? whole : stuck) += 1;
      REQUIRE((ended || !x.rules.oldest_fits));
      if (!ended) continue;
      INFO(validate(problem, table).text());
      REQUIRE(validate(problem, table).ok());
      auto const when = simulate(problem, table);
      for (int rank = 0; rank < problem.ranks; ++rank)
        for (int k = 0; k < table.size(rank); ++k)
          REQUIRE(when.spans.at(rank, k).start <=
                  starts[static_cast<std::size_t>(rank)][static_cast<std::size_t>(k)]);
    }
  REQUIRE(whole > 20 * stuck);
}

TEST_CASE("small changes keep an order right and make it no worse", "[search]") {
  dice roll(23);
  int better = 0;
  for (placement where : {placement::straight, placement::vee, placement::loop})
    for (int i = 0; i < 60; ++i) {
      auto problem = limited_problem(roll, where, 5, 6);
      problem.limit = 0;
      auto const before = reference::random_table(roll, problem, where, reference::style::split);
      auto const want = roll(0, 1) ? objective::makespan : objective::stage_local_span;
      long limit = 0;
      for (int rank = 0; rank < problem.ranks; ++rank)
        limit = std::max(limit, peak_memory(problem, before, rank));
      search_problem const question(problem, where, want, limit);
      search_actions const actions(question);
      search_order order(actions);
      for (int rank = 0; rank < problem.ranks; ++rank)
        for (action const& a : before.row(rank)) order.push(rank, a);
      auto const time_of = [&](auto const& table) {
        auto const when = simulate(problem, table);
        return want == objective::makespan ? when.makespan : when.stage_local_span();
      };
      REQUIRE(order.fits());
      REQUIRE(order_times(actions).play(order).worst == time_of(before));
      search_dice chance;
      score const found = order_tuner(actions).improve(order, {100L * actions.count, 0}, chance);
      auto after = dynamic_table(problem.ranks, where);
      for (int rank = 0; rank < problem.ranks; ++rank)
        for (int k = 0; k < order.size(rank); ++k) after.push(rank, order.at(rank, k));
      REQUIRE(reference::is_right(problem, after));
      for (int rank = 0; rank < problem.ranks; ++rank)
        REQUIRE(peak_memory(problem, after, rank) <= limit);
      REQUIRE(found.worst == time_of(after));
      REQUIRE(found.worst <= time_of(before));
      better += found.worst < time_of(before);
    }
  REQUIRE(better > 100);
}

TEST_CASE("the search gives one answer, and a problem without one is named", "[search]") {
  auto problem = rows[4].question(1.3);
  auto first = dynamic_table(8), second = dynamic_table(8);
  search(problem, first, {objective::makespan, problem.limit, little});
  search(problem, second, {objective::makespan, problem.limit, little});
  REQUIRE(first.items == second.items);

  REQUIRE(Searched<>::refuses(problem) == nullptr);
  REQUIRE(ZeroBubble1P::refuses(problem) == nullptr);
  problem.limit = problem.cost(0).memory.forward;
  REQUIRE(ZeroBubble2P::refuses(problem) == nullptr);
  REQUIRE(validate(problem, make_dynamic_table<ZeroBubble2P>(problem)).ok());
  --problem.limit;
  REQUIRE(std::string(ZeroBubble2P::refuses(problem)) ==
          "not even one micro-batch fits into the memory limit");
  REQUIRE(validate(problem, make_dynamic_table<ZeroBubble2P>(problem)).what == fault::missing);
}

TEST_CASE("zb-1p and zb-2p keep to their memory, and to less where the problem has less",
          "[search]") {
  auto problem = rows[4].question(0);
  long const each = problem.cost(0).memory.forward;
  auto const peak = [&](auto const& table) {
    long most = 0;
    for (int rank = 0; rank < problem.ranks; ++rank)
      most = std::max(most, peak_memory(problem, table, rank));
    return most;
  };
  REQUIRE(peak(make_dynamic_table<ZeroBubble1P>(problem)) <= 8 * each);
  long const two = peak(make_dynamic_table<ZeroBubble2P>(problem));
  REQUIRE(two > 8 * each);
  REQUIRE(two <= 16 * each);
  problem.limit = 100 * each;
  REQUIRE(peak(make_dynamic_table<ZeroBubble1P>(problem)) <= 8 * each);
  problem.limit = 5 * each;
  REQUIRE(peak(make_dynamic_table<ZeroBubble2P>(problem)) <= 5 * each);
}

TEST_CASE("times in any unit: huge numbers are no trouble", "[search]") {
  auto small = equal_times(4, 8, {30, 29, 19}, 1),
       large = equal_times(4, 8, {30'000'000'000'000, 29'000'000'000'000, 19'000'000'000'000},
                           1'000'000'000'000);
  small.limit = large.limit = 5;
  auto const a = make_dynamic_table<Searched<>>(small), b = make_dynamic_table<Searched<>>(large);
  REQUIRE(validate(large, b).ok());
  REQUIRE(simulate(large, b).bubble_by_stage_local_span() ==
          Approx(simulate(small, a).bubble_by_stage_local_span()).margin(0.01));
}

TEST_CASE("many ranks and micro-batches", "[search]") {
  auto problem = equal_times(32, 128, {30, 29, 19, {10, -6, -4}}, 1);
  problem.limit = 2 * 32 * 10;
  auto table = dynamic_table(32);
  search(problem, table, {objective::stage_local_span, problem.limit, 5'000'000});
  REQUIRE(validate(problem, table).ok());
  REQUIRE(simulate(problem, table).bubble_by_stage_local_span() < 0.01);
}

TEST_CASE("events come in order of time, then of rank, and put replaces", "[search]") {
  dice roll(24);
  for (int ranks = 1; ranks <= 9; ++ranks) {
    event_queue queue(ranks);
    std::vector<long> expected(static_cast<std::size_t>(ranks), LONG_MAX);
    for (int i = 0; i < 200; ++i) {
      auto const first = std::min_element(expected.begin(), expected.end());
      REQUIRE(queue.empty() == (*first == LONG_MAX));
      if (!queue.empty() && roll(0, 2) == 0) {
        auto const [time, rank] = queue.take();
        REQUIRE(time == *first);
        REQUIRE(rank == first - expected.begin());
        *first = LONG_MAX;
      } else {
        int const rank = roll(0, ranks - 1), time = roll(0, 20);
        queue.put({time, rank});
        expected[static_cast<std::size_t>(rank)] = time;
      }
    }
  }
}

}  // namespace
