// SPDX-License-Identifier: BSL-1.0
//
// Where a number that is not finite comes from: looks at all that a run makes, in the order in
// which one micro-batch goes through the model, so that the answer does not depend on the schedule.
#pragma once

#include <pipe/base/heap_array.hpp>
#include <pipe/runtime/host/machine.hpp>

namespace pp {

/// law: a is before b if its micro-batch is, or forward before backward, or in the order of the
///      program
struct fault_place {
  int micro_batch = 0, chunk = 0, launch = 0, layer = 0;
  bool forward = true;
  bool is_one = false;  ///< or else there is no fault

  bool is_before(fault_place const& other) const {
    if (micro_batch != other.micro_batch) return micro_batch < other.micro_batch;
    if (forward != other.forward) return forward;
    if (chunk != other.chunk) return (chunk < other.chunk) == forward;
    return launch < other.launch;
  }
};

/// Watches a run of a pipeline on this number of ranks.
class first_fault {
 public:
  PIPE_COLD explicit first_fault(int ranks) : by_rank_(ranks) {}
  static void watch(void* self, launch_seen const& seen) {
    static_cast<first_fault*>(self)->look(seen);
  }

  /// After the run; null if all numbers are finite.
  PIPE_COLD fault_place const* found() const {
    fault_place const* first = nullptr;
    for (fault_place const& p : by_rank_)
      if (p.is_one && (first == nullptr || p.is_before(*first))) first = &p;
    return first;
  }

 private:
  PIPE_COLD void look(launch_seen const& seen) {
    fault_place const p{seen.micro_batch,
                        seen.chunk,
                        seen.launch,
                        seen.what->layer,
                        seen.which == program::forward,
                        true};
    fault_place& mine = by_rank_[seen.rank];
    if ((!mine.is_one || p.is_before(mine)) && !seen.all_finite()) mine = p;
  }

  heap_array<fault_place> by_rank_;  // the first that each saw
};

}  // namespace pp
