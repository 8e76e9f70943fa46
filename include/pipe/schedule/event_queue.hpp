// SPDX-License-Identifier: BSL-1.0
//
// The event queue of a simulation: the next event of each rank, by time.
#pragma once

#include <climits>

#include <pipe/schedule/scratch.hpp>

namespace pp::detail {

/// The time at which a rank next decides what to run.
struct rank_event {
  long time = 0;
  int rank = 0;
};

/// At most one event per rank, in a tournament tree in which the earlier event wins.
///
/// law:   next() is the earliest event, the lowest rank first among equal times; put() replaces the
///        event of its rank
/// needs: next() and take(): not empty
/// cost:  put(), take(): log of the number of ranks; next(): constant
class event_queue {
 public:
  constexpr explicit event_queue(int ranks)
      : width_(width_for(ranks)), time_(width_, LONG_MAX), winner_(2 * width_) {
    for (int i = 2 * width_ - 1; i > 0; --i)
      winner_.item[i] = i >= width_ ? i - width_ : winner_.item[2 * i];
  }
  constexpr bool empty() const { return time_.item[winner_.item[1]] == LONG_MAX; }

  /// Sets the event of its rank.
  constexpr void put(rank_event e) {
    time_.item[e.rank] = e.time;
    for (int i = (width_ + e.rank) / 2; i > 0; i /= 2) {
      int const left = winner_.item[2 * i], right = winner_.item[2 * i + 1];
      winner_.item[i] = time_.item[right] < time_.item[left] ? right : left;
    }
  }
  constexpr rank_event next() const { return {time_.item[winner_.item[1]], winner_.item[1]}; }
  /// Removes and returns the earliest event.
  constexpr rank_event take() {
    rank_event const first = next();
    put({LONG_MAX, first.rank});
    return first;
  }

 private:
  static constexpr int width_for(int ranks) {
    int width = 1;
    while (width < ranks) width *= 2;
    return width;
  }

  int width_;
  scratch<long> time_;   // of the rank's event; LONG_MAX for none
  scratch<int> winner_;  // the earliest rank below a node; node 1 is the root, the ranks come last
};

}  // namespace pp::detail
