// SPDX-License-Identifier: BSL-1.0
//
// The offset of two clocks, from meetings over a network of any delays.
#include "catch.hpp"

#include <cstdlib>
#include <random>
#include <vector>

#include <pipe/train/executed_run.hpp>
#include <pipe/transport/clock_offset.hpp>

using pp::detail::clock_offset, pp::detail::meeting, pp::detail::offset_of;

namespace {

/// Two sides whose clocks differ by `apart`: each comes to a meeting when `come` says, and has
/// heard of the other after a message's time.
struct two_clocks {
  long apart = 0;
  std::vector<meeting> here{}, there{};

  void meet(long here_comes, long there_comes, long to_here, long to_there) {
    auto const later = [](long a, long b) { return a < b ? b : a; };
    here.push_back({here_comes, later(here_comes, there_comes + to_here)});
    there.push_back({there_comes + apart, later(there_comes, here_comes + to_there) + apart});
  }
  clock_offset measured() const { return offset_of(there.data(), here.data(), int(here.size())); }
};

}  // namespace

TEST_CASE("the error of an offset is half of the fastest messages there and back") {
  two_clocks c{1'000'000};
  c.meet(0, 40, 30, 30);      // the second side comes later: its message takes 30
  c.meet(100, 100, 500, 20);  // the message to the second side takes 20
  CHECK(c.measured().error == 25);
  CHECK(std::abs(c.measured().value - c.apart) == 5);  // half of what the ways differ by
  static_assert([] {
    meeting const here[] = {{0, 7}}, there[] = {{100, 107}};
    clock_offset const o = offset_of(there, here, 1);
    return o.value == 100 && o.error == 7;
  }());
}

TEST_CASE("the offset of two clocks is within its error, whatever the delays") {
  std::mt19937 random(1);
  auto const below = [&](long end) { return long(random() % unsigned(end)); };
  for (int round = 0; round < 1000; ++round) {
    two_clocks c{below(2'000'000) - 1'000'000};
    long now = 0, least_here = 1'000'000, least_there = least_here;
    for (int i = 0; i < 1 + round % 40; ++i) {
      long const to_here = 1 + below(3000), to_there = 1 + below(300);
      now += 10'000;
      c.meet(now + below(4000), now + below(4000), to_here, to_there);
      least_here = std::min(least_here, to_here), least_there = std::min(least_there, to_there);
    }
    clock_offset const o = c.measured();
    INFO("round " << round);
    CHECK(std::abs(o.value - c.apart) <= o.error);
    CHECK(o.error >= (least_here + least_there) / 2);
  }
}

TEST_CASE("a run of several processes is on the clock of the first") {
  // Two processes of a rank each and two replicas. Clock p is 1,000,000 p ahead, and a message
  // takes 10 p; the run begins at 100 p, and its first action 3 later, at 103 of process 1.
  using namespace pp;
  std::vector<transports::process_place> places;
  std::vector<detail::run_clock> clocks(4);
  executed_run run{2, 2, 4};
  for (int p = 0; p < 4; ++p) {
    detail::run_clock& clock = clocks[std::size_t(p)];
    long const ahead = 1'000'000L * p, begins = p == 1 ? 100 : 1000 + 100 * p;
    places.push_back(transports::process_place::of(p, 4, 2));
    clock.began = begins + ahead;
    for (meeting& m : clock.met) m = {5000 + ahead, 5000 + 10 * p + ahead};
    run.rows.push_back({{schedules::action{}, 0, 3, 7, 2}, {schedules::action{}, 0, 20, 30, 1}});
  }
  detail::align_clocks(places, clocks, run);
  CHECK(run.clock_error == 15 + 10);  // the two worst, each to process 0
  for (int p = 0; p < 4; ++p) {
    auto const& row = run.rows[std::size_t(p)];
    long const later = p == 1 ? 0 : 900 + 100 * p;
    CHECK(std::abs(row[0].start - (3 + later)) <= run.clock_error);
    CHECK(row[0].end == row[0].start + 4);
    CHECK(row[1].start == row[0].start + 17);
    CHECK(row[1].waited == 1);
  }
  CHECK(run.rows[1][0].start == 3);
}
