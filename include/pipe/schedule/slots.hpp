// SPDX-License-Identifier: BSL-1.0
//
// The channel between two neighbouring chunks is a ring of k slots: the value of its replica's n-th
// micro-batch lies in slot n % k, and its writer waits until the value k turns before has been
// read for the last time. That is the strictest transport there is: bounded, in order, and nothing
// is buffered elsewhere.
#pragma once

#include <climits>
#include <cstddef>

#include <pipe/schedule/placement.hpp>

namespace pp::detail {

/// The slots of the boundary between a chunk and the next: for values on their way forward, for
/// gradients on theirs back.
struct slot_count {
  int activation = 0;
  int gradient = 0;

  friend constexpr bool operator==(slot_count const&, slot_count const&) = default;
};

/// A slot more than an estimated timeline needs: where an action takes longer than estimated, its
/// neighbour need not wait until it has read the value before it writes the next.
constexpr slot_count spare_slots(slot_count n, int micro_batches) {
  return slot_count{n.activation + (n.activation < micro_batches),
                    n.gradient + (n.gradient < micro_batches)};
}

/// Channels that never make a rank wait.
struct unbounded_slots {
  constexpr slot_count operator[](std::size_t) const { return slot_count{INT_MAX, INT_MAX}; }
};

/// The same number of slots at every boundary.
struct same_slots {
  slot_count each{};
  constexpr slot_count operator[](std::size_t) const { return each; }
};

}  // namespace pp::detail
