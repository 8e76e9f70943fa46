// SPDX-License-Identifier: BSL-1.0
//
// The layout of a stage's memory in its chunk: parameters and what belongs to them, then rings of
// records and of boundary slots.
#pragma once

#include <pipe/base/bytes.hpp>
#include <pipe/passes/memory.hpp>
#include <pipe/runtime/description.hpp>
#include <pipe/schedule/slots.hpp>

namespace pp::detail {

/// The parameters of a stage in its chunk, in the order of the model.
///
/// shape: offsets, transposed, places: by parameter of the stage
constexpr void place_parameters(compiled_model const& m, stage_range const& r, long const* offsets,
                                long const* transposed, parameter_place* places) {
  for (int i = 0; i < r.parameters.size(); ++i) {
    int const index = r.parameters.begin + i;
    parameter const& p = m.graph.parameters.items[index];
    places[i] = parameter_place{index,
                                p.trained,
                                p.tied_to >= 0,
                                p.rows(),
                                p.columns(),
                                offsets[i],
                                m.backward.transposed[index] ? transposed[i] : -1,
                                p.is_buffer,
                                p.commit};
  }
}

/// What the layout of a chunk depends on.
struct chunk_facts {
  layout_totals keeping{}, dropping{};  // of the programs that keep what backward reads, or make it
                                        // again
  int keeping_micro_batches = 0, dropping_micro_batches = 0;
  int in_flight = 1;                           // micro-batches between F and the end of backward
  int pending_slots = 0;                       // micro-batches between B and W
  detail::slot_count entered, left;            // of the boundaries before and after
  bool has_entered = false, has_left = false;  // whether there are such
  bool copies_value = false, copies_gradient = false;  // received, into slots of its own
  long received_bytes = 0, received_gradient_bytes = 0;
  number_widths widths{};
  long state_bytes = 0;   // of the optimizer
  bool averages = false;  // of the trained parameters are kept
};

/// Adds the offsets, from the start of the chunk, and the sum of bytes.
///
/// law: nothing overlaps, and there is no gap but for alignment
constexpr void lay_out_chunk(chunk_facts const& f, chunk_description& c) {
  stage_bytes const b = (f.keeping_micro_batches > 0 ? f.keeping : f.dropping).bytes;
  c.parameter_bytes = b.parameters;
  c.trained_bytes = b.trained;
  auto const take = [&](long bytes) {
    long const at = c.bytes;
    c.bytes += align_up(bytes);
    return at;
  };
  auto const take_ring = [&](long stride, int slots) {
    return ring{take(stride * slots), stride, slots < 1 ? 1 : slots};
  };
  c.buffer_bytes = b.buffers;
  c.values = take(b.parameters);
  c.buffers = take(b.buffers);
  c.gradients = take(b.trained);
  c.sums = take(b.sums);
  c.state = take(f.state_bytes);
  c.average = take(f.averages ? b.trained : 0);
  c.copy_bytes =
      f.widths.value != f.widths.element ? b.parameters / f.widths.element * f.widths.value : 0;
  c.copies = take(c.copy_bytes);
  c.transposed = take(b.transposed);
  c.transposed_bytes = b.transposed;
  long pending = 0;
  bool rereads_result = false, rereads_gradient = false;
  auto const add_records = [&](layout_totals const& of, int most, ring& records) {
    if (most == 0) return;
    records = take_ring(of.bytes.record, f.in_flight < most ? f.in_flight : most);
    pending = of.bytes.pending > pending ? of.bytes.pending : pending;
    rereads_result = rereads_result || of.rereads_result;
    rereads_gradient = rereads_gradient || of.rereads_gradient;
  };
  add_records(f.keeping, f.keeping_micro_batches, c.keeping.records);
  add_records(f.dropping, f.dropping_micro_batches, c.dropping.records);
  c.pending = take_ring(pending, f.pending_slots);
  // A value that backward reads stays until then.
  auto const slots = [](int least, bool rereads, int until_then) {
    return rereads && least < until_then ? until_then : least;
  };
  if (f.has_left)
    c.boundary = take_ring(b.boundary, slots(f.left.activation, rereads_result, f.in_flight));
  if (f.has_entered)
    c.gradient =
        take_ring(b.gradient, slots(f.entered.gradient, rereads_gradient, f.pending_slots));
  if (f.copies_value) c.received = take_ring(f.received_bytes, f.entered.activation);
  if (f.copies_gradient)
    c.received_gradient = take_ring(f.received_gradient_bytes, f.left.gradient);
}

}  // namespace pp::detail
