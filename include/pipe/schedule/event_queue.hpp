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
      : width_(width_for(ranks)), winner_(2 * width_, {LONG_MAX, 0}) {}
  constexpr bool empty() const { return next().time == LONG_MAX; }

  /// Sets the event of its rank.
  constexpr void put(rank_event e) {
    int i = width_ + e.rank;
    winner_.item[i] = e;
    for (; i > 1; i /= 2) {
      // An earlier rank is on the left, at the even place, and wins among equal times.
      rank_event const& other = winner_.item[i ^ 1];
      bool const loses = other.time - i % 2 < e.time;
      e.time = loses ? other.time : e.time;
      e.rank = loses ? other.rank : e.rank;
      winner_.item[i / 2] = e;
    }
  }
  constexpr rank_event next() const { return winner_.item[1]; }
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
  scratch<rank_event> winner_;  // the earliest event below a node; 1 is the root, ranks come last
};

}  // namespace pp::detail
