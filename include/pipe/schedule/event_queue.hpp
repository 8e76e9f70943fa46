// SPDX-License-Identifier: BSL-1.0
//
// The event queue of a simulation: ranks by the time of their next look at the world.
#pragma once

#include <climits>

#include <pipe/schedule/scratch.hpp>

namespace pp::detail {

struct rank_event {
  long time = 0;
  int rank = 0;
};

/// The next event of every rank that has one: a tournament of ranks, in which the earlier event
/// wins.
///
/// law:  next() is the earliest one, of equal times the one of the lowest rank; put() replaces the
///       event of its rank
/// cost: log of the number of ranks
class event_queue {
 public:
  constexpr explicit event_queue(int ranks)
      : leaves_(leaves_for(ranks)), time_(leaves_, LONG_MAX), winner_(2 * leaves_) {
    for (int i = 2 * leaves_ - 1; i > 0; --i)
      winner_.item[i] = i >= leaves_ ? i - leaves_ : winner_.item[2 * i];
  }
  constexpr bool empty() const { return time_.item[winner_.item[1]] == LONG_MAX; }

  constexpr void put(rank_event e) {
    time_.item[e.rank] = e.time;
    for (int i = (leaves_ + e.rank) / 2; i > 0; i /= 2) {
      int const left = winner_.item[2 * i], right = winner_.item[2 * i + 1];
      winner_.item[i] = time_.item[right] < time_.item[left] ? right : left;
    }
  }
  constexpr rank_event next() const { return {time_.item[winner_.item[1]], winner_.item[1]}; }
  constexpr rank_event take() {
    rank_event const first = next();
    put({LONG_MAX, first.rank});
    return first;
  }

 private:
  static constexpr int leaves_for(int ranks) {
    int leaves = 1;
    while (leaves < ranks) leaves *= 2;
    return leaves;
  }

  int leaves_;
  scratch<long> time_;   // of a rank's event, or LONG_MAX
  scratch<int> winner_;  // among the ranks below a node; node 1 is the root, the leaves come last
};

}  // namespace pp::detail
