// SPDX-License-Identifier: BSL-1.0
//
// The transfers between ranks: every range of a rank's memory that another rank reads, with the
// reader's slot for it if the transport copies. Executors share no other memory between ranks.
#pragma once

#include <pipe/base/config.hpp>
#include <pipe/runtime/description.hpp>
#include <pipe/schedule/placement.hpp>
#include <pipe/transport/transport.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp::detail {

/// The output of chunk c - 1 for a micro-batch, to chunk c > 0.
///
/// Where the transport does not copy, `received` is empty and transfer::to is not read.
inline transfer values_into(pipeline_description const& d, int c, int micro_batch) {
  chunk_holder const &maker = d.holder[d.holder_of(c - 1, micro_batch)],
                     &reader = d.holder[d.holder_of(c, micro_batch)];
  ring const& made = d.chunk[c - 1].rings.boundary;
  return {maker.rank, reader.rank, maker.values + made.at(micro_batch),
          reader.values + d.chunk[c].rings.received.at(micro_batch), made.stride};
}
/// The gradient of chunk c's output for a micro-batch, from chunk c + 1.
///
/// needs: c + 1 < d.chunks
inline transfer gradients_into(pipeline_description const& d, int c, int micro_batch) {
  chunk_holder const &maker = d.holder[d.holder_of(c + 1, micro_batch)],
                     &reader = d.holder[d.holder_of(c, micro_batch)];
  ring const& made = d.chunk[c + 1].rings.gradient;
  return {maker.rank, reader.rank, maker.values + made.at(micro_batch),
          reader.values + d.chunk[c].rings.received_gradient.at(micro_batch), made.stride};
}
/// The transfer of an action's result to the neighbouring chunk.
///
/// needs: F of a chunk before the last, or B or BW of a chunk after the first
inline transfer result_of(pipeline_description const& d, action const& a) {
  return a.kind == action_kind::forward ? values_into(d, a.chunk + 1, a.micro_batch)
                                        : gradients_into(d, a.chunk - 1, a.micro_batch);
}

/// The numbers of the streams of values and of gradients into a chunk: of the first pair of holders
/// and, with a micro-batch, of the pair that hands it on.
constexpr int values_stream(int chunk) { return 2 * chunk; }
constexpr int gradients_stream(int chunk) { return 2 * chunk + 1; }
inline int values_stream(pipeline_description const& d, int c, int micro_batch) {
  int const pairs = pairs_of(d.chunk[c - 1].holders, d.chunk[c].holders);
  return values_stream(c) + 2 * d.chunks * (micro_batch % pairs);
}
inline int gradients_stream(pipeline_description const& d, int c, int micro_batch) {
  int const pairs = pairs_of(d.chunk[c].holders, d.chunk[c + 1].holders);
  return gradients_stream(c) + 2 * d.chunks * (micro_batch % pairs);
}
/// Calls use(number, stream) for the streams between ranks at boundaries: for each pair of holders
/// of neighbouring chunks that meet, one stream in each direction.
template <class Use>
void for_each_stream(pipeline_description const& d, Use const& use) {
  auto const from = [&](int number, transfer first, ring const& made, ring const& received,
                        view<transports::slot_part> parts, int begin, int pairs) {
    if (first.from_rank == first.to_rank) return;
    first.from -= made.at(begin) - made.offset;
    first.to -= received.at(begin) - received.offset;
    use(number, boundary_stream{first, made.stride, received.stride, made.slots, received.slots,
                                made.step, received.step, begin, pairs, parts});
  };
  for (int c = 1; c < d.chunks; ++c) {
    chunk_description const &before = d.chunk[c - 1], &after = d.chunk[c];
    int const pairs = pairs_of(before.holders, after.holders);
    for (int mb = 0; mb < pairs; ++mb) {
      from(values_stream(d, c, mb), values_into(d, c, mb), before.rings.boundary,
           after.rings.received, before.value_parts, mb, pairs);
      from(gradients_stream(d, c - 1, mb), gradients_into(d, c - 1, mb), after.rings.gradient,
           before.rings.received_gradient, after.gradient_parts, mb, pairs);
    }
  }
}
/// The number of the stream of an action's result; without a description, where each chunk has one
/// holder.
///
/// needs: F of a chunk before the last, or B or BW of a chunk after the first
inline int stream_of(action const& a) {
  return a.kind == action_kind::forward ? values_stream(a.chunk + 1)
                                        : gradients_stream(a.chunk - 1);
}
inline int stream_of(pipeline_description const& d, action const& a) {
  return a.kind == action_kind::forward ? values_stream(d, a.chunk + 1, a.micro_batch)
                                        : gradients_stream(d, a.chunk - 1, a.micro_batch);
}

/// The number of the stream of a gradient or of a buffer's sum, from the holder of a micro-batch to
/// the holder of the next micro-batch.
inline int sum_stream(pipeline_description const& d, chunk_description const& c, int micro_batch,
                      parameter_place const& p) {
  return 2 * d.chunks * d.pairs + micro_batch % c.holders * d.parameter_count + p.index;
}
/// The number of the stream of reports on steps from chunk c's rank to rank `reader`.
inline int report_stream(pipeline_description const& d, int c, int reader) {
  return 2 * d.chunks * d.pairs + d.copied_holders * d.parameter_count + c * d.ranks + reader;
}
/// The number of all streams.
inline int count_rank_streams(pipeline_description const& d) {
  return report_stream(d, d.report_slots > 0 ? d.chunks : 0, 0);
}
/// Calls use(number, stream) for the streams of reports to rank `reader`. These streams carry a
/// report in place of a micro-batch: number n is the n-th step of a segment.
///
/// shape: doubles [parameters of the chunk, 2]; for the last chunk the losses follow
template <class Use>
void for_each_report_stream(pipeline_description const& d, int reader, Use const& use) {
  for (int c = 0; c < d.chunks && d.report_slots > 0; ++c) {
    chunk_description const& chunk = d.chunk[c];
    if (chunk.rank == reader) continue;
    rank_description const &maker = d.rank[chunk.rank], &to = d.rank[reader];
    long const doubles = 2 * chunk.parameters.count + (c == d.chunks - 1 ? d.losses : 0);
    use(report_stream(d, c, reader),
        boundary_stream{{chunk.rank, reader, maker.reports + chunk.norms_before,
                         to.reports + chunk.norms_before, doubles * long(sizeof(double))},
                        maker.report_stride,
                        to.report_stride,
                        d.report_slots,
                        d.report_slots});
  }
}
/// A range of the gradients and sums of a chunk, from holder `from` to holder `to`, which have
/// copies: `bytes` bytes, `begin` bytes from the start of the chunk's gradients.
inline transfer sums_of(pipeline_description const& d, chunk_description const& c, int from, int to,
                        long begin, long bytes) {
  chunk_holder const &maker = d.holder[c.first_holder + from],
                     &reader = d.holder[c.first_holder + to];
  return {maker.rank, reader.rank, c.gradients + begin + d.weights_shift(maker),
          c.gradients + begin + d.weights_shift(reader), bytes};
}
/// Calls use(number, stream) for the streams of sums: for each parameter from each holder of its
/// chunk to the next, and from the last to the first. Such a stream has one slot, the sum itself.
template <class Use>
void for_each_sum_stream(pipeline_description const& d, Use const& use) {
  for (int i = 0; i < d.chunks; ++i) {
    chunk_description const& c = d.chunk[i];
    if (!c.has_copies()) continue;
    for (int n = 0; n < c.holders; ++n)
      for (parameter_place const& p : c.parameters) {
        if (!p.has_sum()) continue;
        long const begin = (p.is_buffer ? c.sums - c.gradients : 0) + p.offset;
        boundary_stream s{
            sums_of(d, c, n, (n + 1) % c.holders, begin, p.elements() * d.element_bytes)};
        s.begin = n, s.step = s.from_step = s.to_step = c.holders;
        use(sum_stream(d, c, n, p), s);
      }
  }
}
/// Calls use(parameter) for each parameter or buffer to whose gradient or sum a launch of a chunk's
/// program adds.
template <class Use>
void for_each_sum(chunk_description const& c, program_view const& view, launch const& l,
                  Use const& use) {
  for (placed_operand const* o = view.operands + l.first; o < view.operands + l.first + l.count;
       ++o) {
    bool const is_buffer = o->at.where == region::buffer_sums;
    // Operands that the launch only reads have 0 elements.
    if (o->elements == 0 || (!is_buffer && o->at.where != region::parameter_gradients)) continue;
    for (parameter_place const& p : c.parameters)
      if (p.has_sum() && p.is_buffer == is_buffer && p.offset == o->at.offset) use(p);
  }
}
/// Calls use(chunk, holder) for each holder that has a copy of its chunk's weights.
template <class Use>
void for_each_copy(pipeline_description const& d, Use const& use) {
  for (int n = 0; n < d.holders(); ++n)
    if (d.is_copy(d.holder[n])) use(d.chunk[d.holder[n].chunk], d.holder[n]);
}
/// The values of a chunk's parameters and buffers, from the owner to a copy. These regions come
/// first in both; the transposed copies behind them are made from the values.
inline transfer weights_of(pipeline_description const& d, chunk_description const& c,
                           chunk_holder const& copy) {
  return {c.rank, copy.rank, c.values, c.values + d.weights_shift(copy), c.transposed - c.values};
}
/// The number of losses that one holder of the last chunk has room for.
inline int losses_of_holder(pipeline_description const& d) {
  return d.losses * losses_of_holder(d.micro_batches, d.chunk[d.chunks - 1].holders);
}
/// The place of a micro-batch's first loss. The losses of a micro-batch lie together, and so do the
/// losses of all micro-batches of a holder of the last chunk.
inline int loss_place(pipeline_description const& d, int micro_batch) {
  int const holders = d.chunk[d.chunks - 1].holders;
  return micro_batch % holders * losses_of_holder(d) + micro_batch / holders * d.losses;
}
/// The losses of holder h of the last chunk, to the first holder.
///
/// shape: doubles [losses_of_holder]
inline transfer losses_of(pipeline_description const& d, chunk_holder const& h) {
  chunk_description const& last = d.chunk[d.chunks - 1];
  int const each = losses_of_holder(d), n = int(&h - d.holder) - last.first_holder;
  long const begin = n * each * long(sizeof(double));
  return {h.rank, last.rank, d.rank[h.rank].losses + begin, d.rank[last.rank].losses + begin,
          each * long(sizeof(double))};
}

/// The squared norms of chunk c's gradients, to rank `reader`.
///
/// shape: doubles [parameters of chunk c, 2]
inline transfer norms_of(pipeline_description const& d, int c, int reader) {
  chunk_description const& chunk = d.chunk[c];
  return {chunk.rank, reader, chunk.norms, d.rank[reader].norms + chunk.norms_before,
          2 * chunk.parameters.count * long(sizeof(double))};
}
/// The sum of each loss over a mini-batch, from the last chunk's rank to rank `reader`.
///
/// shape: doubles [losses]
inline transfer loss_of(pipeline_description const& d, int reader) {
  int const last = d.chunk[d.chunks - 1].rank;
  return {last, reader, d.rank[last].losses, d.rank[reader].losses,
          d.losses * long(sizeof(double))};
}

/// The gradient of a shared parameter's later place, to the first place. T: element type.
template <class T>
transfer gradient_of(pipeline_description const& d, tie const& t) {
  chunk_description const &place = d.chunk[t.chunk], &owner = d.chunk[t.owner_chunk];
  return {place.rank, owner.rank, place.gradients + t.place.offset, d.rank[owner.rank].received_tie,
          t.place.elements() * long(sizeof(T))};
}
/// The values of a shared parameter, from the first place to a later one. T: element type.
template <class T>
transfer values_of(pipeline_description const& d, tie const& t) {
  chunk_description const &place = d.chunk[t.chunk], &owner = d.chunk[t.owner_chunk];
  return {owner.rank, place.rank, owner.values + t.owner.offset, place.values + t.place.offset,
          t.place.elements() * long(sizeof(T))};
}

}  // namespace pp::detail
PIPE_OPTIMIZED_END
