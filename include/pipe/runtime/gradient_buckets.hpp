// SPDX-License-Identifier: BSL-1.0
//
// The buckets in which a rank's gradients are joined over accumulations and added up over replicas,
// each bucket as soon as a run has completed it.
#pragma once

#include <pipe/base/heap_array.hpp>
#include <pipe/runtime/description.hpp>
#include <pipe/runtime/shards.hpp>

namespace pp::detail {

/// A part of a chunk's gradients and of its buffers' sums that is joined at once: a bucket of
/// shard_cuts, as replicas exchange it.
///
/// units: bytes from the start of the chunk's gradients
struct gradient_bucket {
  int chunk = 0, number = 0;
  long begin = 0, end = 0;
  /// Whether every replica needs the bucket's sum: true unless ZeRO divides the updates.
  bool is_for_all = true;
  /// If the bucket is of a divided parameter: the parameter's number in divided_operands. The
  /// gradient is then in a ring, and this replica's part of the sum is copied to `keep`.
  int parameter = -1;
  char* keep = nullptr;
  /// The last launch that writes to the bucket, by set of programs: `keeping`, `dropping`.
  int launch[2]{-1, -1};
};

/// The buckets of a rank's chunks, in the order in which backward completes them: the last chunk
/// first, and the buckets of a chunk by their last launches. The order is the same in every run, as
/// all replicas must exchange buckets in one order.
[[gnu::cold]] inline heap_array<gradient_bucket> gradient_buckets(pipeline_description const& d,
                                                                  long width, int rank) {
  auto const cuts_of = [&](int c) { return shard_cuts{d.chunk[c], width, 1}; };
  long count = 0;
  for (int c = 0; c < d.chunks; ++c)
    if (d.chunk[c].rank == rank) count += cuts_of(c).buckets();
  heap_array<gradient_bucket> buckets(count);
  gradient_bucket* next = buckets.begin();
  for (int c = d.chunks - 1; c >= 0; --c) {
    chunk_description const& chunk = d.chunk[c];
    if (chunk.rank != rank) continue;
    gradient_bucket* const first = next;
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
          for (gradient_bucket* p = first; p < next; ++p)
            if (begin < p->end && begin + width * o.elements > p->begin)
              p->launch[set == &chunk.dropping] = l;
        }
    }
    // Insertion sort. If some micro-batches keep all values, the last one does.
    int const which = chunk.keeping.weight_program().count == 0;
    for (gradient_bucket* last = first; last < next; ++last)
      for (gradient_bucket* p = last; p > first && p->launch[which] < p[-1].launch[which]; --p) {
        gradient_bucket const later = p[-1];
        p[-1] = *p;
        *p = later;
      }
  }
  return buckets;
}

}  // namespace pp::detail
