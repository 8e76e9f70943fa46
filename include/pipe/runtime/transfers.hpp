// SPDX-License-Identifier: BSL-1.0
//
// The transfers between ranks: every range of memory that one rank reads of another, with the
// reader's slot for it if the transport copies. Machines share no other memory between ranks.
#pragma once

#include <pipe/base/config.hpp>
#include <pipe/runtime/description.hpp>
#include <pipe/transport/transport.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp::detail {

/// The output of chunk c - 1 for a micro-batch, to chunk c > 0.
///
/// Where nothing is copied, `received` is empty and the `to` of a transfer is not read.
inline transfer values_into(pipeline_description const& d, int c, int micro_batch) {
  chunk_holder const &maker = d.holder[d.holder_of(c - 1, micro_batch)],
                     &reader = d.holder[d.holder_of(c, micro_batch)];
  ring const& made = d.chunk[c - 1].boundary;
  return {maker.rank, reader.rank, maker.values + made.at(micro_batch),
          reader.values + d.chunk[c].received.at(micro_batch), made.stride};
}
/// The gradient of chunk c's output for a micro-batch, from chunk c + 1.
///
/// needs: c + 1 < d.chunks
inline transfer gradients_into(pipeline_description const& d, int c, int micro_batch) {
  chunk_holder const &maker = d.holder[d.holder_of(c + 1, micro_batch)],
                     &reader = d.holder[d.holder_of(c, micro_batch)];
  ring const& made = d.chunk[c + 1].gradient;
  return {maker.rank, reader.rank, maker.values + made.at(micro_batch),
          reader.values + d.chunk[c].received_gradient.at(micro_batch), made.stride};
}
/// The transfer of an action's result to the neighbouring chunk.
///
/// needs: F of a chunk before the last, or B or BW of a chunk after the first
inline transfer result_of(pipeline_description const& d, action const& a) {
  return a.kind == action_kind::forward ? values_into(d, a.chunk + 1, a.micro_batch)
                                        : gradients_into(d, a.chunk - 1, a.micro_batch);
}

/// The numbers of the streams into a chunk.
constexpr int values_stream(int chunk) { return 2 * chunk; }
constexpr int gradients_stream(int chunk) { return 2 * chunk + 1; }
/// Calls use(number, stream) for the streams between ranks, in the order of the model.
template <class Use>
void for_each_stream(pipeline_description const& d, Use const& use) {
  for (int c = 0; c < d.chunks; ++c) {
    chunk_description const& reader = d.chunk[c];
    auto const from = [&](int number, chunk_description const& maker, ring const& made,
                          ring const& received, transfer const& first) {
      if (maker.rank != reader.rank)
        use(number,
            boundary_stream{first, made.stride, received.stride, made.slots, received.slots});
    };
    if (c > 0) {
      chunk_description const& maker = d.chunk[c - 1];
      from(values_stream(c), maker, maker.boundary, reader.received, values_into(d, c, 0));
    }
    if (c + 1 < d.chunks) {
      chunk_description const& maker = d.chunk[c + 1];
      from(gradients_stream(c), maker, maker.gradient, reader.received_gradient,
           gradients_into(d, c, 0));
    }
  }
}
/// The number of the stream of an action's result.
///
/// needs: F of a chunk before the last, or B or BW of a chunk after the first
inline int stream_of(action const& a) {
  return a.kind == action_kind::forward ? values_stream(a.chunk + 1)
                                        : gradients_stream(a.chunk - 1);
}

/// The squared norms of chunk c's gradients, to rank `reader`.
///
/// shape: doubles [parameters of chunk c, 2]
inline transfer norms_of(pipeline_description const& d, int c, int reader) {
  chunk_description const& chunk = d.chunk[c];
  return {chunk.rank, reader, chunk.norms, d.rank[reader].norms + chunk.norms_before,
          2 * chunk.parameter_count * long(sizeof(double))};
}
/// The sum of the losses of a mini-batch, from the last chunk's rank to rank `reader`: one double.
inline transfer loss_of(pipeline_description const& d, int reader) {
  int const last = d.chunk[d.chunks - 1].rank;
  return {last, reader, d.rank[last].losses, d.rank[reader].losses, sizeof(double)};
}

/// The gradient of a shared parameter's later place, to the first one. T: element type.
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
