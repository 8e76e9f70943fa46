// SPDX-License-Identifier: BSL-1.0
//
// Accumulations by the speed of replicas: the shares that times give, and when they change.
#include "catch.hpp"

#include <pipe/train/parts/replica_speeds.hpp>

#include <algorithm>
#include <cstddef>
#include <vector>

using namespace pp::detail;

namespace {

using numbers = std::vector<int>;

template <class T>
heap_array<T> heaped(std::vector<T> const& from) {
  heap_array<T> to(long(from.size()));
  std::copy(from.begin(), from.end(), to.begin());
  return to;
}
numbers shares(std::vector<double> const& times, int accumulations, int most) {
  heap_array<int> counts(long(times.size()));
  share_by_time(heaped(times), accumulations, most, counts);
  return {counts.begin(), counts.end()};
}

/// This process is replica 0; the others' times are known.
struct engine {
  std::vector<long> times;  // of replicas 1, 2, ..., in nanoseconds; 0: they state no speed
  std::size_t calls = 0;
  long least(long here) {
    std::size_t const r = calls++ % (times.size() + 1);
    return r == 0 ? here : -times[r - 1];
  }
};
/// The time of an accumulation at a stated speed.
long at_speed(double speed) { return long(1e9 / speed); }
/// Steps of eight accumulations, of which this replica runs its share; returns the shares
/// afterwards. work: of each accumulation, of which the time is that
numbers after(int steps, long time, std::vector<long> const& others, numbers const& begin,
              double work = 1) {
  engine of{{0}};
  replica_speeds speeds;
  heap_array<int> counts = heaped(begin);
  speeds.state(of, 0, 0, 8, 7, counts);
  of.times = others;
  for (int i = 0; i < steps; ++i) {
    speeds.note(time, work);
    speeds.end_step(of, 0, 8, 7, counts);
  }
  return {counts.begin(), counts.end()};
}

}  // namespace

TEST_CASE("the slowest replica is done as early as it can be") {
  CHECK(shares({1, 1}, 8, 8) == numbers{4, 4});
  CHECK(shares({2, 1}, 16, 16) == numbers{5, 11});
  CHECK(shares({1, 1, 1}, 8, 8) == numbers{3, 3, 2});
  CHECK(shares({1, 100}, 8, 8) == numbers{7, 1});
  CHECK(shares({1, 100}, 8, 6) == numbers{6, 2});
  for (double slow : {1.0, 1.3, 2.7, 9.0}) {
    std::vector<double> const times{slow, 1, 2};
    double best = 1e9;
    for (int a = 1; a <= 14; ++a)
      for (int b = 1; a + b <= 15; ++b)
        best = std::min(best, longest_time(heaped(times), heaped(numbers{a, b, 16 - a - b})));
    CHECK(longest_time(heaped(times), heaped(shares(times, 16, 14))) == best);
  }
}
TEST_CASE("measured shares change after a period, if that is worth it") {
  constexpr int period = replica_speeds::period;
  CHECK(after(period - 1, 3'000, {1'000}, {4, 4}) == numbers{4, 4});
  CHECK(after(period, 3'000, {1'000}, {4, 4}) == numbers{2, 6});
  CHECK(after(period, 1'000, {1'090}, {4, 4}) == numbers{4, 4});
  // 4 x 1100 would be 4 x 1090 or so: another share, and not enough of a gain.
  CHECK(after(period, 1'000, {1'040}, {5, 3}) == numbers{4, 4});
  CHECK(after(period, 1'300, {1'000}, {4, 4}) == numbers{4, 4});
}
TEST_CASE("times are of the rows that are there") {
  constexpr int period = replica_speeds::period;
  CHECK(after(period, 1'500, {1'000}, {4, 4}, .5) == numbers{2, 6});
  CHECK(after(period, 250, {1'000}, {4, 4}, .25) == numbers{4, 4});
}
TEST_CASE("stated speeds are not measured") {
  engine of{{at_speed(3)}};
  replica_speeds speeds;
  heap_array<int> counts = heaped(numbers{4, 4});
  speeds.state(of, 1, 0, 8, 7, counts);
  CHECK(numbers(counts.begin(), counts.end()) == numbers{2, 6});
  auto const calls = of.calls;
  for (int i = 0; i < 2 * replica_speeds::period; ++i)
    speeds.note(1, 1), speeds.end_step(of, 0, 8, 7, counts);
  CHECK(of.calls == calls);
  engine silent{{0}}, stating{{at_speed(1)}};
  CHECK_THROWS_WITH(speeds.state(silent, 1, 0, 8, 7, counts),
                    "runtime.speed is given for replica 0, and not for replica 1: give it in all "
                    "processes, or in none");
  CHECK_THROWS_WITH(speeds.state(stating, 0, 0, 8, 7, counts),
                    Catch::Contains("replica 1, and not for replica 0"));
}
