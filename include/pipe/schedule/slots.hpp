// SPDX-License-Identifier: BSL-1.0
//
// The channel between two neighbouring chunks: a ring of k slots. The n-th micro-batch of a replica
// uses slot n % k, and its writer waits until the value written k values earlier has been read for
// the last time. This is the strictest transport there is: bounded, in order, with no other buffer.
// A schedule that runs on this transport runs on any.
#pragma once

#include <climits>
#include <cstddef>

#include <pipe/schedule/placement.hpp>

namespace pp::detail {

/// Slots of the boundary between a chunk and the next: for activations on the way forward, and for
/// their gradients on the way back.
struct slot_count {
  int activation = 0;
  int gradient = 0;

  friend constexpr bool operator==(slot_count const&, slot_count const&) = default;
};

/// One slot more than an estimated timeline needs, at most one per micro-batch: an action that
/// takes longer than estimated then does not delay its neighbour's next write.
constexpr slot_count spare_slots(slot_count n, int micro_batches) {
  return slot_count{n.activation + (n.activation < micro_batches),
                    n.gradient + (n.gradient < micro_batches)};
}

/// Slots without a limit: no rank ever waits for one.
struct unbounded_slots {
  constexpr slot_count operator[](std::size_t) const { return slot_count{INT_MAX, INT_MAX}; }
};

}  // namespace pp::detail
