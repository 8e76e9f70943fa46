// SPDX-License-Identifier: BSL-1.0
//
// Layers that are measured with a clock of the test: laws of profiles hold without a time of the
// machine.
#pragma once

#include <set>
#include <vector>

#include "catch.hpp"

#include <pipe/plan/profile.hpp>

#include "laws/data.hpp"

namespace laws {

/// A trainer whose launches take the time that a function of them says.
template <class Trainer, class Clock>
struct timed_by : Trainer {
  explicit timed_by(Clock c) : clock(c) {}
  Clock clock;
  template <class See>
  void watch(typename Trainer::batch const& data, See see) {
    Trainer::watch(data, [&](pp::launch_seen seen) {
      seen.nanoseconds = clock(seen);
      see(seen);
    });
  }
};
template <class Trainer, class Clock>
pp::detail::layer_times measured_by(Clock clock) {
  timed_by<Trainer, Clock> trainer(clock);
  sample_batch<Trainer> const data(3);
  return pp::measure_layers(trainer, data.view(), 2);
}

/// If every launch takes a millisecond, the times of all layers are as many as launches of a
/// micro-batch that do more than recompute.
template <class Trainer>
pp::detail::layer_times times_add_up() {
  Trainer trainer;
  sample_batch<Trainer> const data(3);
  std::size_t const ranks = Trainer::compiled::ranks;
  std::vector<std::set<pp::detail::launch const*>> launches(ranks);
  trainer.watch(data.view(), [&](pp::launch_seen const& seen) {
    if (!seen.what->recomputed) launches[std::size_t(seen.rank)].insert(seen.what);
  });
  long count = 0, sum = 0;
  for (auto const& of : launches) count += long(of.size());
  pp::detail::layer_times const times =
      measured_by<Trainer>([](pp::launch_seen const&) { return 1000000L; });
  for (pp::detail::layer_time const& t : times.each) sum += t.all();
  CHECK(sum == 1000000 * count);
  CHECK(times.spread == 0);
  return times;
}

}  // namespace laws
