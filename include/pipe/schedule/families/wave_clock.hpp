// SPDX-License-Identifier: BSL-1.0
//
// The clock by which virtual workers read each other's waves: they train copies of a model on
// mini-batches of their own, and add the changes of others with a delay that does not depend on
// their speeds.
#pragma once

namespace pp {

/// The clock of virtual workers. A wave is one or more steps of a worker, after which its change of
/// the weights is for all others; wave c of all workers has the clock c, from 0 on.
///
/// law: wave c begins with the changes of the waves before c of its own worker, and of the waves
///      before waves_of_others(c) of every other one; none of a later one
/// law: where workers follow it, they are at most `distance` + 1 waves apart: a worker ends wave c
///      only after all others have ended wave c - 1 - distance
/// source: Park et al., HetPipe, 2020, section 5, where the distance is the most, and a worker
/// reads
///         what has come
struct wave_clock {
  int distance = 0;  ///< D >= 0; 0: a wave begins with all waves before it, of all workers

  /// How many waves of each other worker wave c begins with.
  constexpr long waves_of_others(long c) const { return c > distance ? c - distance : 0; }
  /// How many steps of another worker before step j of wave c that step does not read; both workers
  /// make `steps` steps in a wave.
  constexpr long missing(long c, int j, int steps) const {
    return c * steps + j - waves_of_others(c) * steps;
  }
  /// The most of missing(): it is attained in the last step of every wave from D on.
  ///
  /// law: (D + 1) steps - 1. HetPipe's s_global is s_local more, by which its worker's own
  ///      mini-batches overlap beyond the end of a wave
  constexpr long staleness(int steps = 1) const { return (distance + 1L) * steps - 1; }
  /// Own waves that other workers need not have read, and waves of others that have come too early:
  /// how many of each are kept at most.
  constexpr int kept() const { return distance + 1; }
};

}  // namespace pp
