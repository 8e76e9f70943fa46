// SPDX-License-Identifier: BSL-1.0
//
// The pieces in which a rank's gradients are joined over leaves and added up over replicas, each as
// soon as a run has completed it.
#pragma once

#include <pipe/base/heap_array.hpp>
#include <pipe/runtime/description.hpp>
#include <pipe/runtime/shards.hpp>

namespace pp::detail {

/// A part of a chunk's gradients and sums that is joined at once: a bucket of shard_cuts, which
/// replicas exchange.
///
/// units: bytes from the start of the chunk's gradients
struct leaf_piece {
  int chunk = 0, bucket = 0;
  long begin = 0, end = 0;
  /// Whether every replica needs its sum: all are, unless ZeRO divides the updates.
  bool is_for_all = true;
  /// Of a divided parameter: its number in divided_operands. Its gradient is in a ring, and the own
  /// part of the sum is copied to `keep`.
  int parameter = -1;
  char* keep = nullptr;
  /// The last launch that writes to it, by set of programs: `keeping`, `dropping`.
  int launch[2]{-1, -1};
};

/// The pieces of a rank's chunks, in the order in which backward completes them: the last chunk
/// first, and each by launches. The order does not depend on a run, as all replicas exchange pieces
/// in the same one.
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
    // Insertion sort. The last micro-batch keeps values, if any does.
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
