// SPDX-License-Identifier: BSL-1.0
//
// Who acts next, when time is played event by event: ranks by the time of their next look at the world.
#pragma once

#include <pipe/schedule/scratch.hpp>

namespace pp {

struct rank_event {
  long time = 0;
  int rank = 0;
  constexpr bool operator<(rank_event const& b) const { return time != b.time ? time < b.time : rank < b.rank; }
};

/// A binary heap of at most `ranks` events. law: take() gives the earliest one, of equal times the one of the lowest rank
class event_queue {
 public:
  constexpr explicit event_queue(int ranks) : heap_(ranks) {}
  constexpr bool empty() const { return count_ == 0; }

  constexpr void put(rank_event e) {
    int at = count_++;
    for (; at > 0 && e < heap_.item[(at - 1) / 2]; at = (at - 1) / 2) heap_.item[at] = heap_.item[(at - 1) / 2];
    heap_.item[at] = e;
  }
  constexpr rank_event take() {
    rank_event const first = heap_.item[0], last = heap_.item[--count_];
    int at = 0;
    for (int child = 1; child < count_; child = 2 * at + 1) {
      if (child + 1 < count_ && heap_.item[child + 1] < heap_.item[child]) ++child;
      if (!(heap_.item[child] < last)) break;
      heap_.item[at] = heap_.item[child];
      at = child;
    }
    heap_.item[at] = last;
    return first;
  }

 private:
  scratch<rank_event> heap_;
  int count_ = 0;
};

}  // namespace pp
