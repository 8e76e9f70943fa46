// SPDX-License-Identifier: BSL-1.0
//
// The updates of a rank without ZeRO: all parameters of the rank. With ZeRO: see
// runtime/host/replicas/rank_shards.hpp.
#pragma once

#include <pipe/base/config.hpp>
#include <pipe/base/heap_array.hpp>
#include <pipe/base/view.hpp>
#include <pipe/runtime/description.hpp>
#include <pipe/runtime/shards.hpp>
#include <pipe/transport/transport.hpp>

namespace pp::detail {

/// A range of bytes that one replica gives to the others.
struct replica_range {
  char* data = nullptr;
  long bytes = 0;
};

/// A range that this replica updates, and the addresses of its values, gradients and state.
template <class T>
struct owned_update {
  update_range of;
  T *values = nullptr, *gradients = nullptr, *state = nullptr;
};

/// The updates of one rank without ZeRO: all ranges and all gradients of the rank. T: element type.
/// The same interface as rank_shards, for a transport without replicas.
template <class T>
class rank_updates {
 public:
  /// blocks[count]: those of the rank's gradients, in the order of rank_description::blocks
  [[gnu::cold]] void assemble(pipeline_description const& d, int rank, char* memory,
                              gradient_block const* blocks, int count) {
    long updates = 0;
    for (int c = 0; c < d.chunks; ++c)
      if (d.chunk[c].rank == rank) updates += d.chunk[c].updates.count;
    updates_ = heap_array<owned_update<T>>(updates);
    first_update_ = heap_array<long>(d.chunks + 1);
    auto const at = [&](long offset) { return reinterpret_cast<T*>(memory + offset); };
    long next = 0;
    for (int c = 0; c < d.chunks; ++c) {
      chunk_description const& chunk = d.chunk[c];
      if (chunk.rank == rank)
        for (update_range const& u : chunk.updates)
          updates_[next++] = {u, at(chunk.values) + u.begin, at(chunk.gradients) + u.begin,
                              at(chunk.state) + u.state};
      first_update_[c + 1] = next;
    }
    gradients_ = heap_array<T*>(count);
    for (int i = 0; i < count; ++i) {
      gradient_block const& b = blocks[i];
      long const region = b.of->is_buffer ? b.chunk->sums : b.chunk->gradients;
      gradients_[i] = at(region + b.of->offset) + b.begin;
    }
  }
  /// The ranges of a chunk that this replica updates.
  view<owned_update<T>> updates_of(int chunk) const {
    long const* const first = first_update_.begin() + chunk;
    return {updates_.begin() + first[0], int(first[1] - first[0])};
  }
  /// The gradient of a block, or the sum if the block is of a buffer.
  T* gradient_of(long block) const { return gradients_[block]; }
  bool measures(long) const { return true; }
  void pack(gradient_block const*) {}
  void unpack(gradient_block*) const {}
  replica_range squares_of(int, long) const { return {}; }
  replica_range values_of(int, long) const { return {}; }

 protected:
  heap_array<owned_update<T>> updates_;
  heap_array<long> first_update_;  // by chunk, and the end
  heap_array<T*> gradients_;       // by block
};

/// The end of a rank's arena in this process.
template <class T, class Transport>
arena_end arena_end_of(pipeline_description const& d, int rank,
                       [[maybe_unused]] process_place const& place) {
  if constexpr (replica_transport<Transport>) {
    return end_of_arena(d, sizeof(T), rank, place.replicas, place.replica);
  } else {
    arena_end whole;
    whole.sums = d.rank[rank].fixed_bytes;
    whole.end = d.rank[rank].bytes;
    return whole;
  }
}

}  // namespace pp::detail
