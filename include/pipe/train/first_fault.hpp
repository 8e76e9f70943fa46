// SPDX-License-Identifier: BSL-1.0
//
// Where a number that is not finite comes from: looks at all that a run makes, in the order in which one micro-batch goes
// through the model, so that the answer does not depend on the schedule.
#pragma once

#include <cmath>
#include <tuple>
#include <vector>

#include <pipe/runtime/machine.hpp>

namespace pp {

/// law: a is before b if its micro-batch is, or forward before backward, or in the order of the program
struct fault_place {
  int micro_batch = 0, chunk = 0, launch = 0, layer = 0;
  bool forward = true;
  auto order() const { return std::tuple(micro_batch, !forward, forward ? chunk : -chunk, launch); }
};

/// Watches a run of a pipeline whose elements are T, on so many ranks.
template <class T>
class first_fault {
 public:
  explicit first_fault(int ranks) : by_rank_(std::size_t(ranks)) {}
  static void watch(void* self, launch_seen const& seen) { static_cast<first_fault*>(self)->look(seen); }

  /// After the run; null if all numbers are finite.
  fault_place const* found() const {
    fault_place const* first = nullptr;
    for (std::vector<fault_place> const& of_rank : by_rank_)
      for (fault_place const& p : of_rank)
        if (first == nullptr || p.order() < first->order()) first = &p;
    return first;
  }

 private:
  void look(launch_seen const& seen) {
    for (int k = 0; k < seen.what->count; ++k) {
      T const* const values = static_cast<T const*>(seen.slots[k]);
      for (long i = 0; i < seen.operands[k].elements; ++i)
        if (!std::isfinite(values[i])) return note(seen);
    }
  }
  void note(launch_seen const& seen) {
    fault_place const p{seen.micro_batch, seen.chunk, seen.launch, seen.what->layer, seen.which == program::forward};
    std::vector<fault_place>& mine = by_rank_[std::size_t(seen.rank)];
    if (mine.empty())
      mine.push_back(p);
    else if (p.order() < mine.front().order())
      mine.front() = p;
  }

  std::vector<std::vector<fault_place>> by_rank_;  // the first that each saw
};

}  // namespace pp
