// SPDX-License-Identifier: BSL-1.0
//
// The memory map of a pipeline: one arena per rank, which contains its chunks, then scratch and
// workspaces.
#pragma once

#include <initializer_list>

#include <pipe/base/bytes.hpp>
#include <pipe/base/list.hpp>
#include <pipe/runtime/description.hpp>

namespace pp::detail {

/// Layout of all arenas.
template <int Stages, int Ranks, int Holders = Stages>
struct memory_map {
  list<chunk_description, Stages> chunks;
  list<rank_description, Ranks> rank;
  list<chunk_holder, Holders> holders;

  /// Sets chunk and rank of every holder, whose values lay_out_rank then places.
  ///
  /// needs: the chunks' holders are numbered
  template <class Where>
  constexpr void place(Where const& where) {
    for (int s = 0; s < Stages; ++s)
      for (int n = 0; n < chunks[s].holders; ++n)
        holders[chunks[s].first_holder + n] = chunk_holder{s, rank_of(where, Ranks, s, n)};
  }
};

/// Rebases a chunk's offsets from the start of the chunk to the start of its rank's arena.
constexpr void shift(chunk_description& c, long bytes) {
  for (long* offset : {&c.values, &c.gradients, &c.state, &c.average, &c.copies, &c.transposed,
                       &c.buffers, &c.sums, &c.versions.begin})
    *offset += bytes;
}

/// Lays out the arena of rank r: the weights of chunks that it owns or has copies of, the values of
/// those that it holds, then scratch, which they share, then one workspace per thread.
///
/// law: regions do not overlap, and gaps are for alignment only
template <int Stages, int Ranks, int Holders>
constexpr void lay_out_rank(memory_map<Stages, Ranks, Holders>& m, int r,
                            list<long, Stages> const& scratch_bytes, int threads,
                            long workspace_bytes) {
  rank_description& rank = m.rank[r];
  long scratch = 0;
  for (int s = 0; s < Stages; ++s) {
    chunk_description& c = m.chunks[s];
    if (c.rank == r) {
      shift(c, rank.bytes);
      m.holders[c.first_holder].weights = rank.bytes;
      rank.bytes += c.sizes.weights;
      c.host_state = rank.host_bytes;
      rank.host_bytes += c.sizes.host_state;
    }
    for (int n = c.first_holder; n < c.first_holder + c.holders; ++n) {
      if (m.holders[n].rank != r) continue;
      if (n > c.first_holder && c.has_copies()) {
        m.holders[n].weights = rank.bytes;
        rank.bytes += c.sizes.copy;
      }
      m.holders[n].values = rank.bytes;
      rank.bytes += c.sizes.values;
      if (scratch_bytes[s] > scratch) scratch = scratch_bytes[s];
    }
  }
  rank.scratch = rank.bytes;
  rank.workspace = rank.scratch + align_up(scratch);
  rank.bytes = rank.workspace + threads * workspace_bytes;
}

}  // namespace pp::detail
