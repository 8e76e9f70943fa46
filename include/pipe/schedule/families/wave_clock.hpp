// SPDX-License-Identifier: BSL-1.0
//
// The clock by which virtual workers read each other's waves. The workers train copies of a model
// on their own mini-batches, and each adds the changes of the others with a delay that does not
// depend on speeds.
#pragma once

namespace pp {

namespace schedules {

/// The clock of virtual workers. A wave is one or more steps of a worker, after which the worker
/// sends its change of the weights to all others; waves are numbered by the clock, from 0 on.
///
/// law: wave c begins with the changes of the worker's own waves before c, and of every other
///      worker's waves before waves_of_others(c), and with no others
/// law: workers that follow the clock are at most `distance` + 1 waves apart: a worker ends wave c
///      only after all others have ended wave c - 1 - distance
/// source: Park et al., HetPipe, 2020, section 5, where a worker reads what has come, and the
///         distance is the most that it may be behind
struct wave_clock {
  int distance = 0;  ///< D >= 0; 0: a wave begins with all waves before it, of all workers

  /// The number of waves of each other worker whose changes are in the weights when wave c begins.
  constexpr long waves_of_others(long c) const { return c > distance ? c - distance : 0; }
  /// The number of steps of another worker that come before step j of wave c, and whose changes
  /// step j does not read. Both workers make `steps` steps in a wave.
  constexpr long missing(long c, int j, int steps) const {
    return c * steps + j - waves_of_others(c) * steps;
  }
  /// The maximum of missing(), which the last step of every wave from D on attains.
  ///
  /// law: (D + 1) steps - 1. HetPipe's s_global is s_local more, since mini-batches of a worker
  ///      there overlap the end of a wave
  constexpr long staleness(int steps = 1) const { return (distance + 1L) * steps - 1; }
  /// The maximum number of a worker's own waves that are kept because another worker may not have
  /// read them yet; and, of each other worker, of waves that are kept because they have come too
  /// early.
  constexpr int kept() const { return distance + 1; }
};

}  // namespace schedules

namespace detail {
using namespace schedules;
}  // namespace detail

}  // namespace pp
