// SPDX-License-Identifier: BSL-1.0
//
// A placement in two directions whose ranks share memory: both ranks that hold a chunk read one
// copy of the chunk's weights and add to one gradient. So a table for ranks with a copy each
// (Chimera, DualPipe) trains with the bits of one stage.
#pragma once

#include <pipe/schedule/placement.hpp>

namespace pp::detail {

/// A placement, with one copy of the weights of each chunk.
///
/// law: an action that makes a weight gradient follows the one of the previous micro-batch, on any
///      rank
struct shared_weights {
  placement where = placement::straight;

  // The functions of a placement, by those of `where`.
  friend constexpr int replicas(shared_weights w) { return replicas(w.where); }
  friend constexpr int replicas(shared_weights w, int chunk) { return replicas(w.where, chunk); }
  friend constexpr int rank_of(shared_weights w, int ranks, int chunk, int micro_batch = 0) {
    return rank_of(w.where, ranks, chunk, micro_batch);
  }
  friend constexpr int chunk_on(shared_weights w, int ranks, int rank, int index) {
    return chunk_on(w.where, ranks, rank, index);
  }
  friend constexpr int holders(shared_weights w, int chunks) { return holders(w.where, chunks); }
  friend constexpr int holder_of(shared_weights w, int chunk, int micro_batch) {
    return holder_of(w.where, chunk, micro_batch);
  }
  friend constexpr int chunks_for(shared_weights w, int ranks, int chunks_per_rank) {
    return chunks_for(w.where, ranks, chunks_per_rank);
  }
  friend constexpr bool fits(shared_weights w, int ranks, int chunks) {
    return fits(w.where, ranks, chunks);
  }
  friend constexpr char const* what_fits(shared_weights w) { return what_fits(w.where); }
};

template <>
inline constexpr bool adds_in_order<shared_weights> = true;

}  // namespace pp::detail
