// SPDX-License-Identifier: BSL-1.0
//
// The clock of virtual workers: what a wave reads, its bound, and that no worker waits for ever or
// reads what cannot have come, at whatever speeds.
#include "catch.hpp"

#include <algorithm>
#include <vector>

#include <pipe/schedule/families/pipedream.hpp>
#include <pipe/schedule/families/wave_clock.hpp>

#include "reference.hpp"

namespace {

using pp::schedules::wave_clock;
using reference::dice;

/// The most that a step of `waves` waves does not read, counted step by step.
constexpr long most_missing(wave_clock clock, int steps, int waves) {
  long most = 0;
  for (int c = 0; c < waves; ++c)
    for (int j = 0; j < steps; ++j) {
      long missing = 0;
      for (long s = 0; s < c * steps + j; ++s) missing += s / steps >= clock.waves_of_others(c);
      if (missing != clock.missing(c, j, steps)) return -1;
      if (missing > most) most = missing;
    }
  return most;
}
constexpr bool bound_is_attained() {
  for (int distance = 0; distance < 5; ++distance)
    for (int steps = 1; steps < 5; ++steps) {
      wave_clock const clock{distance};
      if (most_missing(clock, steps, distance + 3) != clock.staleness(steps)) return false;
      if (distance > 0 && most_missing(clock, steps, distance) >= clock.staleness(steps))
        return false;
    }
  return true;
}
static_assert(bound_is_attained());
static_assert(wave_clock{0}.staleness() == 0 && wave_clock{0}.staleness(4) == 3);
static_assert(wave_clock{2}.staleness(4) == 11);  // and s_global is 14: s_local = 3 more

/// Whether a distance of 1 between updates, at which delayed replicas apply sums, is the rule of
/// PipeDream-2BW, in forward and backward and on all ranks.
constexpr bool is_that_of_two_versions() {
  for (int mini_batch : {1, 4, 7})
    for (int micro_batch = 0; micro_batch < 5 * mini_batch; ++micro_batch)
      for (int ahead : {0, 3})
        for (pp::schedules::action_kind kind :
             {pp::schedules::action_kind::forward, pp::schedules::action_kind::backward}) {
          int const version =
              pp::PipeDream2BW<>::version({kind, micro_batch, ahead, 4, mini_batch});
          if (wave_clock{1}.waves_of_others(micro_batch / mini_batch) !=
              (version < 0 ? 0 : version))
            return false;
        }
  return true;
}
static_assert(is_that_of_two_versions());

/// Random speeds: ends[worker][wave], where a wave begins when those that it reads have ended.
std::vector<std::vector<long>> ends_of(wave_clock clock, int workers, int waves, dice& any) {
  std::vector ends(std::size_t(workers), std::vector<long>{});
  for (int c = 0; c < waves; ++c)
    for (int i = 0; i < workers; ++i) {
      std::vector<long>& own = ends[std::size_t(i)];
      long begin = own.empty() ? 0 : own.back();
      for (auto const& other : ends)
        if (long const n = clock.waves_of_others(c); n > 0)
          begin = std::max(begin, other[std::size_t(n - 1)]);
      own.push_back(begin + any(1, 1 + 20 * (i + 1)));
    }
  return ends;
}

}  // namespace

TEST_CASE("virtual workers are at most a distance and one wave apart") {
  dice any{7};
  for (int distance : {0, 1, 2, 3})
    for (int workers : {1, 2, 3, 4, 7}) {
      constexpr int waves = 40;
      auto const ends = ends_of({distance}, workers, waves, any);
      long apart = 0;
      for (auto const& a : ends)
        for (auto const& b : ends)
          for (long t : a) {
            auto const done = [&](auto const& of) {
              return std::upper_bound(of.begin(), of.end(), t) - of.begin();
            };
            apart = std::max(apart, long(done(a) - done(b)));
          }
      CHECK(apart <= distance + 1);
      CHECK((workers == 1 || apart == distance + 1));  // the bound is attained
    }
}
TEST_CASE("a clock that waits longer ends no earlier") {
  for (int seed : {1, 2, 3})
    for (int distance : {0, 1, 2, 3}) {
      dice same{unsigned(seed)}, again{unsigned(seed)};
      auto const strict = ends_of({distance}, 4, 40, same),
                 loose = ends_of({distance + 1}, 4, 40, again);
      for (std::size_t i = 0; i < strict.size(); ++i) CHECK(loose[i].back() <= strict[i].back());
    }
}
