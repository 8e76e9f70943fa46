// SPDX-License-Identifier: BSL-1.0
//
// The cut by time, memory and transfers is the best of all cuts, found by trying every one.
#include "catch.hpp"

#include <algorithm>
#include <climits>
#include <random>
#include <tuple>
#include <vector>

#include <pipe/passes/partition_memory.hpp>
#include <pipe/schedule/placement.hpp>

using namespace pp;

namespace {

using numbers = std::vector<long>;
using cuts_of = std::vector<int>;

/// A model to cut with storage of its own.
struct model {
  numbers times, state, kept, crossing, fixed;
  std::vector<int> in_flight, rank;
  int ranks = 1, replicas = 1;
  long limit = 0;

  int stages() const { return int(in_flight.size()); }
  detail::cut_problem problem() const {
    return {int(times.size()),
            stages(),
            ranks,
            replicas,
            times.data(),
            state.data(),
            kept.data(),
            crossing.data(),
            in_flight.data(),
            rank.data(),
            fixed.empty() ? nullptr : fixed.data(),
            limit};
  }
  void place(schedules::placement where) {
    replicas = schedules::replicas(where);
    rank.clear();
    for (int s = 0; s < stages(); ++s)
      for (int k = 0; k < replicas; ++k) rank.push_back(schedules::rank_of(where, ranks, s, k));
  }
};

/// What cuts are compared by, in this order: time, memory, transfers, and by cut the distance from
/// an even share of the time. Of places as near, first those after the share from the left, then
/// those before it from the right.
struct value {
  long time = LONG_MAX, bytes = LONG_MAX, crossing = LONG_MAX;
  numbers off;
  auto key() const { return std::tie(time, bytes, crossing, off); }
};

value value_of(model const& m, cuts_of const& cuts) {
  value v{0, 0, 0, {}};
  int const stages = m.stages(), layers = int(m.times.size());
  numbers bytes(std::size_t(m.ranks), 0);
  if (!m.fixed.empty()) bytes = m.fixed;
  long total = 0, before = 0;
  for (long t : m.times) total += t;
  for (int s = 0; s < stages; ++s) {
    long time = 0, owned = 0, in_each = 0;
    for (std::size_t i = std::size_t(cuts[std::size_t(s)]);
         i < std::size_t(cuts[std::size_t(s) + 1]); ++i) {
      time += m.times[i];
      owned += m.state[i];
      in_each += m.in_flight[std::size_t(s)] * m.kept[i];
    }
    for (int k = 0; k < m.replicas; ++k)
      bytes[std::size_t(m.rank[std::size_t(s * m.replicas + k)])] += in_each + (k == 0 ? owned : 0);
    v.time = std::max(v.time, time);
    before += time;
    int const cut = cuts[std::size_t(s) + 1];
    if (cut == layers) continue;
    v.crossing += m.crossing[std::size_t(cut)];
    long const even = total / stages * (s + 1) + total % stages * (s + 1) / stages;
    v.off.push_back(std::abs(before - even));
    v.off.push_back(before > even ? cut : 2 * layers - cut);
  }
  v.bytes = *std::max_element(bytes.begin(), bytes.end());
  return v;
}

/// The best of all cuts: within the limit, or of the least memory if no cuts are within it.
value best_by_trial(model const& m) {
  value best, least;
  int const stages = m.stages(), layers = int(m.times.size());
  cuts_of cuts(std::size_t(stages + 1), 0);
  cuts.back() = layers;
  auto const in_memory = [](value const& v) { return std::tie(v.bytes, v.crossing, v.off); };
  auto const choose = [&](auto const& next, int s) -> void {
    if (s == stages) {
      value const v = value_of(m, cuts);
      if ((m.limit == 0 || v.bytes <= m.limit) && v.key() < best.key()) best = v;
      if (in_memory(v) < in_memory(least)) least = v;
      return;
    }
    for (int cut = cuts[std::size_t(s - 1)] + 1; cut <= layers - (stages - s); ++cut) {
      cuts[std::size_t(s)] = cut;
      next(next, s + 1);
    }
  };
  choose(choose, 1);
  return best.time == LONG_MAX ? least : best;
}

value found(model const& m) {
  cuts_of cuts(std::size_t(m.stages() + 1), -1);
  detail::partition_by_memory(m.problem(), cuts);
  REQUIRE(cuts.front() == 0);
  REQUIRE(cuts.back() == int(m.times.size()));
  for (std::size_t s = 0; s + 1 < cuts.size(); ++s) REQUIRE(cuts[s] < cuts[s + 1]);
  return value_of(m, cuts);
}

void is_best(model const& m) {
  value const a = found(m), b = best_by_trial(m);
  CAPTURE(m.limit, a.time, b.time, a.bytes, b.bytes, a.crossing, b.crossing, a.off, b.off);
  REQUIRE(a.key() == b.key());
}

class chance {
 public:
  int operator()(int from, int to) { return from + int(engine_() % unsigned(to - from + 1)); }
  numbers numbers_up_to(int most, int count) {
    numbers all;
    for (int i = 0; i < count; ++i) all.push_back(operator()(0, 3) == 0 ? 0 : operator()(0, most));
    return all;
  }
  /// A model of few layers. Few distinct numbers make ties, many make none.
  model any_model(int stages, int ranks) {
    chance& roll = *this;
    model m;
    int const layers = stages + roll(0, 8 - std::min(stages, 6)), spread = roll(0, 1) ? 4 : 1000;
    m.ranks = ranks;
    m.times = numbers_up_to(spread, layers);
    if (roll(0, 2) == 0) m.times[std::size_t(roll(0, layers - 1))] = 3 * spread;
    m.state = numbers_up_to(spread, layers);
    m.kept = numbers_up_to(roll(0, 1) ? spread : spread / 4, layers);
    m.crossing = numbers_up_to(3, layers);
    int const micro_batches = roll(1, 6);
    for (int s = 0; s < stages; ++s) m.in_flight.push_back(std::min(micro_batches, stages - s));
    if (roll(0, 3) == 0)
      for (int& n : m.in_flight) n = roll(1, micro_batches);
    return m;
  }
  /// A limit near the memory of some cuts.
  void limit(model& m) {
    chance& roll = *this;
    value const best = best_by_trial(m);
    m.limit = std::max(1L, best.bytes * roll(40, 120) / 100);
    if (roll(0, 1))
      for (int r = 0; r < m.ranks; ++r) m.fixed.push_back(roll(0, int(m.limit / 8)));
  }

 private:
  std::mt19937 engine_{7};
};

}  // namespace

TEST_CASE("the cut by time, memory and transfers is the best of all cuts") {
  chance roll;
  for (int tried = 0; tried < 1000; ++tried) {
    int const stages = roll(1, 6);
    model m = roll.any_model(stages, stages);
    m.place(schedules::placement::straight);
    is_best(m);
    roll.limit(m);
    is_best(m);
  }
}
TEST_CASE("what several stages of a rank hold is added up") {
  chance roll;
  for (int tried = 0; tried < 1000; ++tried) {
    int const ranks = roll(1, 3);
    auto const where = roll(0, 1) ? schedules::placement::loop : schedules::placement::vee;
    model m = roll.any_model(2 * ranks, ranks);
    m.place(where);
    if (roll(0, 3) == 0) {
      m = roll.any_model(2 * ranks, 2 * ranks);
      m.place(schedules::placement::bidirectional);
    }
    is_best(m);
    roll.limit(m);
    is_best(m);
  }
}
TEST_CASE("a cut that memory does not move is that by time alone") {
  chance roll;
  for (int tried = 0; tried < 300; ++tried) {
    int const stages = roll(1, 12);
    model m = roll.any_model(stages, stages);
    m.place(schedules::placement::straight);
    for (numbers* all : {&m.state, &m.kept, &m.crossing}) all->assign(m.times.size(), 0);
    cuts_of by_time(std::size_t(stages + 1), -1), cuts = by_time;
    detail::partition_by_cost(m.times, int(m.times.size()), stages, by_time);
    detail::partition_by_memory(m.problem(), cuts);
    REQUIRE(cuts == by_time);
  }
}
TEST_CASE("a cut by memory is a constant, of a hundred layers too") {
  constexpr auto cuts = [] {
    long times[100]{}, state[100]{}, kept[100]{}, crossing[100]{};
    int in_flight[8]{}, rank[8]{};
    for (int i = 0; i < 100; ++i) {
      times[i] = 1'000'000 + i * 997 % 1013;
      state[i] = 64 * (i % 2 ? 1024 : 2048), kept[i] = 64 * 512, crossing[i] = 4096;
    }
    times[99] = 40'000'000;  // a head that no cut shortens, with a large table
    state[99] = 64 * 8192;
    for (int s = 0; s < 8; ++s) in_flight[s] = 8 - s, rank[s] = s;
    struct {
      int at[9]{};
      constexpr int& operator[](int i) { return at[i]; }
      constexpr int operator[](int i) const { return at[i]; }
    } c;
    detail::partition_by_memory(
        {100, 8, 8, 1, times, state, kept, crossing, in_flight, rank, nullptr, 0}, c);
    return c;
  }();
  static_assert(cuts[0] == 0 && cuts[8] == 100);
  static_assert(cuts[7] == 99);
  static_assert(cuts[1] < 12 && cuts[7] - cuts[6] > 15);  // the first ranks keep most micro-batches
}
