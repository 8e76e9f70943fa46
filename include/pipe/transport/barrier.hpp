// SPDX-License-Identifier: BSL-1.0
//
// Barrier of all ranks of a run. Either all ranks pass or none: a rank that stops because the run
// has failed withdraws its arrival, so that no rank updates its parameters while another does not.
#pragma once

#include <pipe/base/config.hpp>
#include <pipe/transport/waiting.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp::detail {

/// A reusable counting barrier. Meetings of a run are numbered from 1; one counter of arrivals
/// serves them all, since barrier m is complete at m * ranks arrivals.
class barrier {
 public:
  barrier(int ranks, patience const& limits) : ranks_(ranks), limits_(limits) {}

  /// Forgets all arrivals. To be called between runs, while no rank waits.
  void reset() { arrived_.reset(); }

  /// Arrives at a barrier and waits for all other ranks. Returns `done` if all ranks pass it,
  /// otherwise `failed` or `too_long`, and then no rank passes it.
  ///
  /// needs: every rank calls it with numbers 1, 2, ... in order
  waited arrive_and_wait(int number, failure_flag const& failed) {
    arrived_.add();
    waited const outcome = arrived_.wait(number * ranks_, limits_, failed);
    // A withdrawal fails if all ranks have arrived by now: then this rank passes too.
    return outcome != waited::done && arrived_.withdraw(number * ranks_) ? outcome : waited::done;
  }

  /// Cancels a barrier: no rank will pass it. Returns false, without effect, if all ranks have
  /// already arrived. One call per failed run is enough.
  ///
  /// needs: where it returns true, the caller sets the failure flag, which ends the waits
  bool cancel(int number) { return arrived_.withdraw(number * ranks_); }

  /// Wakes waiting ranks so that they see the failure flag.
  void wake_all() { arrived_.wake(); }

 private:
  int ranks_;
  patience limits_;
  /// Arrivals at all barriers since reset().
  progress arrived_;
};

}  // namespace pp::detail
PIPE_OPTIMIZED_END
