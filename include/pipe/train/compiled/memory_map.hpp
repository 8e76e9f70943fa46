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
template <int Stages, int Ranks>
struct memory_map {
  list<chunk_description, Stages> chunks;
  list<rank_description, Ranks> rank;
};

/// Rebases a chunk's offsets from the start of the chunk to the start of its rank's arena.
constexpr void shift(chunk_description& c, long bytes) {
  for (long* offset :
       {&c.values, &c.gradients, &c.state, &c.average, &c.copies, &c.transposed, &c.buffers,
        &c.sums, &c.keeping.records.offset, &c.dropping.records.offset, &c.pending.offset,
        &c.boundary.offset, &c.gradient.offset, &c.received.offset, &c.received_gradient.offset})
    *offset += bytes;
}

/// Lays out the arena of rank r: its chunks, then scratch, which they share, then one workspace per
/// thread.
///
/// law: regions do not overlap, and gaps are for alignment only
template <int Stages, int Ranks>
constexpr void lay_out_rank(memory_map<Stages, Ranks>& m, int r,
                            list<long, Stages> const& scratch_bytes, int threads,
                            long workspace_bytes) {
  rank_description& rank = m.rank[r];
  long scratch = 0;
  for (int s = 0; s < Stages; ++s) {
    chunk_description& c = m.chunks[s];
    if (c.rank != r) continue;
    shift(c, rank.bytes);
    rank.bytes += c.bytes;
    if (scratch_bytes[s] > scratch) scratch = scratch_bytes[s];
  }
  rank.scratch = rank.bytes;
  rank.workspace = rank.scratch + align_up(scratch);
  rank.bytes = rank.workspace + threads * workspace_bytes;
}

}  // namespace pp::detail
