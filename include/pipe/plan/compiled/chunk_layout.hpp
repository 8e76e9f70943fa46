// SPDX-License-Identifier: BSL-1.0
//
// The layout of a stage's memory in its chunk: the flat regions of parameters, gradients and
// optimizer state, then rings of records and boundary slots.
#pragma once

#include <pipe/base/bytes.hpp>
#include <pipe/passes/memory.hpp>
#include <pipe/runtime/description.hpp>
#include <pipe/runtime/device_blocks.hpp>
#include <pipe/schedule/placement.hpp>
#include <pipe/schedule/policy.hpp>
#include <pipe/schedule/slots.hpp>

namespace pp::detail {

/// Places of a stage's parameters in its chunk, in model order.
///
/// shape: offsets, transposed, places: by parameter of the stage
constexpr void place_parameters(compiled_model const& m, stage_range const& r, long const* offsets,
                                long const* transposed, parameter_place* places) {
  for (int i = 0; i < r.parameters.size(); ++i) {
    int const index = r.parameters.begin + i;
    parameter const& p = m.parameters.items[index];
    places[i] = parameter_place{
        index,       p.trained,  p.tied_to >= 0, p.rows(),
        p.columns(), offsets[i], transposed[i],  m.transposed[index] == copy_layout::panels,
        p.is_buffer, p.commit,   p.unit};
  }
}

/// Inputs of a chunk's layout.
struct chunk_facts {
  /// Sizes for programs that keep what backward reads, and for those that recompute it.
  layout_totals keeping{}, dropping{};
  int keeping_micro_batches = 0, dropping_micro_batches = 0;
  int holders = 1;                             ///< ranks that run it, each with values of its own
  int in_flight = 1;                           ///< most micro-batches between F and end of backward
  int pending_slots = 0;                       ///< most micro-batches between B and W
  detail::slot_count entered, left;            ///< slots of the boundaries before and after
  bool has_entered = false, has_left = false;  ///< whether these boundaries exist
  bool copies_value = false, copies_gradient = false;  ///< whether received values are copied
  bool copies_weights = false;  ///< whether each holder has a copy of the weights
  long received_bytes = 0, received_gradient_bytes = 0;
  int holders_before = 1, holders_after = 1;  ///< of the neighbouring chunks
  number_widths widths{};
  long state_bytes = 0;            ///< optimizer state
  int zero = 0;                    ///< what replicas divide, and is not in the chunk: see ZeRO
  bool divides_gradients = false;  ///< see pipeline_description
  bool offloads_state = false;     ///< the state is in the host's memory: see OffloadState
  bool averages = false;           ///< averages of trained parameters are kept
  int version_slots = 1;           ///< versions of the weights
  bool keeps_state = false;        ///< also the state before the newest update
};

/// Sets a chunk's offsets, those of rings from the start of a holder's values, and its sizes.
///
/// law: regions do not overlap, and gaps are for alignment only
constexpr void lay_out_chunk(chunk_facts const& f, chunk_description& c) {
  stage_bytes const b = (f.keeping_micro_batches > 0 ? f.keeping : f.dropping).bytes;
  c.sizes.parameters = b.parameters;
  c.sizes.trained = b.trained;
  long* end = &c.sizes.weights;
  auto const take = [&](long bytes) {
    long const at = *end;
    *end += align_up(bytes);
    return at;
  };
  // A ring without slots takes no bytes but counts as one slot, since a slot is found modulo it.
  auto const take_ring = [&](long stride, int slots) {
    return ring{take(stride * slots), stride, slots < 1 ? 1 : slots, f.holders};
  };
  c.sizes.buffers = b.buffers;
  // All of a region but its first bytes, which are elsewhere.
  auto const take_after = [&](long first, long bytes) { return take(bytes - first) - first; };
  c.sizes.divided = b.divided;
  c.sizes.divided_transposed = b.divided_transposed;
  c.values = take_after(f.zero > 2 ? b.divided : 0, b.parameters);
  c.buffers = take(b.buffers);
  c.transposed = take_after(f.zero > 2 ? b.divided_transposed : 0, b.transposed);
  c.sizes.transposed = b.transposed;
  // Where parameters have transposed copies, their 16-bit copies are beside these, as versions and
  // other holders have both.
  c.sizes.copies = f.widths.has_copies() ? b.parameters / f.widths.element * f.widths.value : 0;
  if (f.widths.has_transposes)
    c.copies = take_after(
        f.zero > 2 && f.widths.has_copies() ? b.divided / f.widths.element * f.widths.value : 0,
        c.sizes.copies);
  c.gradients = take_after(f.divides_gradients ? b.divided : 0, b.trained);
  c.sums = take(b.sums);
  c.sizes.copy = f.copies_weights ? *end : 0;
  c.sizes.state = align_up(f.state_bytes);
  c.sizes.host_state = f.offloads_state ? c.sizes.state : 0;
  c.state = take(f.zero > 0 || f.offloads_state ? 0 : f.state_bytes);
  c.average = take(f.averages ? b.trained : 0);
  if (!f.widths.has_transposes) c.copies = take(c.sizes.copies);
  c.versions.slots = f.version_slots;
  c.versions.bytes = f.version_slots > 1 ? c.gradients - c.values : 0;
  c.versions.begin = take((f.version_slots - 1) * c.versions.bytes);
  if (f.keeps_state) c.versions.to_kept_state = take(f.state_bytes) - c.state;
  end = &c.sizes.values;
  c.holders = f.holders;
  long pending = 0;
  bool rereads_result = false, rereads_gradient = false;
  // Records of both sets of programs have rings of their own; pending records share one ring, whose
  // slots are as large as the larger set needs.
  auto const add_records = [&](layout_totals const& of, int most, ring& records) {
    if (most == 0) return;
    records = take_ring(of.bytes.record, f.in_flight < most ? f.in_flight : most);
    pending = of.bytes.pending > pending ? of.bytes.pending : pending;
    rereads_result = rereads_result || of.rereads_result;
    rereads_gradient = rereads_gradient || of.rereads_gradient;
  };
  add_records(f.keeping, f.keeping_micro_batches, c.keeping.records);
  add_records(f.dropping, f.dropping_micro_batches, c.dropping.records);
  c.rings.pending = take_ring(pending, f.pending_slots);
  // A boundary value that backward reads keeps its slot until then.
  auto const slots = [](int least, bool rereads, int until_then) {
    return rereads && least < until_then ? until_then : least;
  };
  if (f.has_left)
    c.rings.boundary = take_ring(b.boundary, slots(f.left.activation, rereads_result, f.in_flight));
  if (f.has_entered || b.gradient > 0)  // of the first stage: gradients of inputs
    c.rings.gradient =
        take_ring(b.gradient, slots(f.entered.gradient, rereads_gradient, f.pending_slots));
  // As many values as the slots of all holders that send them, divided among those that receive.
  auto const received = [&](int of_each, int senders) {
    return (of_each * senders + f.holders - 1) / f.holders;
  };
  if (f.copies_value)
    c.rings.received =
        take_ring(f.received_bytes, received(f.entered.activation, f.holders_before));
  if (f.copies_gradient)
    c.rings.received_gradient =
        take_ring(f.received_gradient_bytes, received(f.left.gradient, f.holders_after));
}

/// Describes chunk s of Work, a pipeline_schedule or a planned_pipeline with a valid table, but for
/// its parameters and programs: facts of the schedule and the options are added to those of the
/// passes, `f`, and laid out.
///
/// needs: f has the sizes of programs and of the optimizer's state, and of its boundaries the slots
///        and what is received
template <class Work>
constexpr void describe_chunk(int s, chunk_facts f, chunk_description& c) {
  auto const rank = [](int stage) { return rank_of(Work::where, Work::ranks, stage); };
  c.rank = rank(s);
  c.first_holder = holder_of(Work::where, s, 0);
  c.first_kept = Work::first_kept_of(s);
  // Micro-batches before first_kept run programs that recompute, the others programs that keep what
  // backward reads.
  f.dropping_micro_batches = c.first_kept;
  f.keeping_micro_batches = Work::micro_batches - c.first_kept;
  f.in_flight = Work::in_flight(s);
  // Of several mini-batches at once, any number of each kind may be in flight.
  if (Work::is_free && f.keeping_micro_batches > 0) f.keeping_micro_batches = f.in_flight;
  if (Work::is_free && f.dropping_micro_batches > 0) f.dropping_micro_batches = f.in_flight;
  f.holders = replicas(Work::where, s);
  f.copies_weights = f.holders > 1 && Work::transport::copies;
  f.pending_slots = Work::pending_slots(s);
  f.widths = Work::widths;
  f.zero = Work::zero::level;
  f.divides_gradients = Work::divides_gradients;
  f.offloads_state = Work::offload::is_on;
  f.averages = Work::averaging::averages;
  f.version_slots = Work::version_slots(s);
  f.keeps_state = Work::overlap == step_overlap::confirmed;
  f.has_entered = s > 0;
  if (s == 0) f.entered.gradient = 1;  // each is delivered before the next one
  if (f.has_entered) {
    f.copies_value = is_copied<Work>(rank(s - 1), c.rank);
    f.holders_before = replicas(Work::where, s - 1);
  }
  f.has_left = s + 1 < Work::stages;
  if (f.has_left) {
    f.copies_gradient = is_copied<Work>(rank(s + 1), c.rank);
    f.holders_after = replicas(Work::where, s + 1);
  }
  lay_out_chunk(f, c);
}

}  // namespace pp::detail
