// SPDX-License-Identifier: BSL-1.0
//
// The meetings of all ranks in a run. Either all ranks pass a meeting or none does: one that stops
// because the run has failed takes its arrival back.
#pragma once

#include <pipe/base/config.hpp>
#include <pipe/transport/waiting.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp::detail {

class barrier {
 public:
  barrier(int ranks, patience const& limits) : ranks_(ranks), limits_(limits) {}

  /// Before a run, while no rank is in one.
  void reset() { arrived_.reset(); }

  /// Returns when all ranks have called it for this meeting, the first being number 1; `failed` or
  /// `too_long` only if no rank passes it.
  ///
  /// needs: every rank calls it for meetings 1, 2, ... in turn
  waited meet(int meeting, failure_flag const& failed) {
    arrived_.add();
    waited const outcome = arrived_.wait(meeting * ranks_, limits_, failed);
    return outcome != waited::done && arrived_.withdraw(meeting * ranks_) ? outcome : waited::done;
  }

  /// Keeps the ranks from passing this meeting, unless all have arrived. One call is enough in a
  /// run that has failed.
  bool call_off(int meeting) { return arrived_.withdraw(meeting * ranks_); }

  void wake_all() { arrived_.wake(); }

 private:
  int ranks_;
  patience limits_;
  progress arrived_;
};

}  // namespace pp::detail
PIPE_OPTIMIZED_END
