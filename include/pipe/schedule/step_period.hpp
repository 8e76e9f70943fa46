// SPDX-License-Identifier: BSL-1.0
//
// The period of a schedule: the time of a step where steps follow each other without a barrier.
#pragma once

namespace pp {

namespace schedules {

/// The long-run time of a step, exactly: `time` in `steps` steps, in lowest terms. 0 in 1: unknown.
///
/// units: those of the problem's times
struct step_period {
  long time = 0;
  long steps = 1;

  constexpr double value() const { return static_cast<double>(time) / static_cast<double>(steps); }
  /// The idle share of `ranks` ranks that work for `work` in a step, all together.
  constexpr double idle_share(long work, int ranks = 1) const {
    return time == 0 ? 0 : 1 - static_cast<double>(work) / (value() * ranks);
  }
  friend constexpr bool operator==(step_period const&, step_period const&) = default;
  /// Whether `a` is shorter. needs: products of time and steps are below 2^63
  friend constexpr bool operator<(step_period const& a, step_period const& b) {
    return a.time * b.steps < b.time * a.steps;
  }
};

}  // namespace schedules

namespace detail {
using namespace schedules;
}  // namespace detail

}  // namespace pp
