// SPDX-License-Identifier: BSL-1.0
//
// The pieces in which a rank's gradients are joined over accumulations and added up over replicas,
// each piece as soon as a run has completed it.
#pragma once

#include <pipe/base/heap_array.hpp>
#include <pipe/runtime/description.hpp>
#include <pipe/runtime/shards.hpp>

namespace pp::detail {

/// A part of a chunk's gradients and of its buffers' sums that is joined at once: a bucket of
/// shard_cuts, as replicas exchange it.
///
/// units: bytes from the start of the chunk's gradients
struct leaf_piece {
  int chunk = 0, bucket = 0;
  long begin = 0, end = 0;
  /// Whether every replica needs the piece's sum: true unless ZeRO divides the updates.
  bool is_for_all = true;
  /// If the piece is of a divided parameter: the parameter's number in divided_operands. The
  /// gradient is then in a ring, and this replica's part of the sum is copied to `keep`.
  int parameter = -1;
  char* keep = nullptr;
  /// The last launch that writes to the piece, by set of programs: `keeping`, `dropping`.
  int launch[2]{-1, -1};
};

/// The pieces of a rank's chunks, in the order in which backward completes them: the last chunk
/// first, and the pieces of a chunk by their last launches. The order is the same in every run, as
/// all replicas must exchange pieces in one order.
[[gnu::cold]] inline heap_array<leaf_piece> pieces_of(pipeline_description const& d, long width,
                                                      int rank) {
  auto const cuts_of = [&](int c) { return shard_cuts{d.chunk[c], width, 1}; };
  long count = 0;
  for (int c = 0; c < d.chunks; ++c)
    if (d.chunk[c].rank == rank) count += cuts_of(c).buckets();
  heap_array<leaf_piece> pieces(count);
  leaf_piece* next = pieces.begin();
  for (int c = d.chunks - 1; c >= 0; --c) {
    chunk_description const& chunk = d.chunk[c];
    if (chunk.rank != rank) continue;
    leaf_piece* const first = next;
    shard_cuts const cuts = cuts_of(c);
    for (int b = 0; b < cuts.buckets(); ++b, ++next) {
      long const begin = cuts.begin_of(b), end = cuts.begin_of(b + 1);
      *next = {c, b, begin, end, d.zero == 0 || is_for_all(d, cuts, b)};
    }
    for (program_set const* set : {&chunk.keeping, &chunk.dropping}) {
      program_view const& view = set->weight_program();
      for (int l = 0; l < view.count; ++l)
        for (int k = 0; k < view.launches[l].count; ++k) {
          placed_operand const& o = view.operands[view.launches[l].first + k];
          bool const is_sum = o.at.where == region::buffer_sums;
          if (o.elements == 0 || (!is_sum && o.at.where != region::parameter_gradients)) continue;
          long const begin = o.at.offset + (is_sum ? chunk.sums - chunk.gradients : 0);
          for (leaf_piece* p = first; p < next; ++p)
            if (begin < p->end && begin + width * o.elements > p->begin)
              p->launch[set == &chunk.dropping] = l;
        }
    }
    // Insertion sort. If some micro-batches keep all values, the last one does.
    int const which = chunk.keeping.weight_program().count == 0;
    for (leaf_piece* last = first; last < next; ++last)
      for (leaf_piece* p = last; p > first && p->launch[which] < p[-1].launch[which]; --p) {
        leaf_piece const later = p[-1];
        p[-1] = *p;
        *p = later;
      }
  }
  return pieces;
}

}  // namespace pp::detail
