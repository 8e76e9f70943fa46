// SPDX-License-Identifier: BSL-1.0
//
// Where a number that is not finite comes from: looks at all that a run makes, in the order in which one micro-batch goes
// through the model, so that the answer does not depend on the schedule.
#pragma once

#include <cmath>
#include <tuple>
#include <vector>

#include <pipe/runtime/machine.hpp>
#include <pipe/train/launches.hpp>

namespace pp {

/// law: a is before b if its micro-batch is, or forward before backward, or in the order of the program
struct fault_place {
  int micro_batch = 0, chunk = 0, launch = 0, layer = 0;
  bool forward = true;
  auto order() const { return std::tuple(micro_batch, !forward, forward ? chunk : -chunk, launch); }
};

/// Watches a run of compiled pipeline P.
template <class P>
class first_fault {
 public:
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
    bool const drops = seen.micro_batch < P::first_kept;
    launch_facts const& facts = book_.at(seen.chunk, drops, seen.which, seen.launch);
    for (written const& w : facts.writes) {
      auto const* const values = static_cast<typename P::element const*>(seen.slots[w.slot]);
      for (long i = 0; i < w.elements; ++i)
        if (!std::isfinite(values[i])) return note(seen, facts.layer);
    }
  }
  void note(launch_seen const& seen, int layer) {
    fault_place const p{seen.micro_batch, seen.chunk, seen.launch, layer, seen.which == program::forward};
    std::vector<fault_place>& mine = by_rank_[std::size_t(seen.rank)];
    if (mine.empty())
      mine.push_back(p);
    else if (p.order() < mine.front().order())
      mine.front() = p;
  }

  launch_book<P> book_;
  std::vector<fault_place> by_rank_[std::size_t(P::ranks)];  // the first that each rank saw
};

}  // namespace pp
