// SPDX-License-Identifier: BSL-1.0
//
// Execution of a schedule's action, common to all executors: its dependencies, the addresses of its
// operands, its programs, and the milestones it publishes. An executor supplies the means: threads
// that wait and call kernels, or streams with events and launches.
#pragma once

#include <pipe/backend/launch_context.hpp>
#include <pipe/base/config.hpp>
#include <pipe/passes/address.hpp>
#include <pipe/runtime/description.hpp>
#include <pipe/runtime/job.hpp>
#include <pipe/runtime/transfers.hpp>
#include <pipe/transport/transport.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp::detail {

/// The segments of a micro-batch's rows on an axis; null: all planned rows are there. axis: as
/// op::axis
inline segment_list const* segments_in(job const& j, int micro_batch, int axis) {
  return j.batch.segments == nullptr || axis == 0
             ? nullptr
             : j.batch.segments + micro_batch * j.batch.axes + (axis - 1);
}
/// The rows of a micro-batch that are there.
inline transports::row_counts rows_in(job const& j, int micro_batch) {
  transports::row_counts rows;
  for (int axis = 1; axis <= j.batch.axes; ++axis)
    rows.of_axis[axis - 1] = segments_in(j, micro_batch, axis)->rows;
  return rows;
}
/// The segments of the rows of output number `output`, which are those of its loss, too; null:
/// none, or an output without positions.
inline segment_list const* output_segments_in(pipeline_description const& d, job const& j,
                                              int micro_batch, int output) {
  return segments_in(j, micro_batch, d.output[output].axis);
}
/// The real samples of a micro-batch: d.samples, fewer in a padded micro-batch, 0 after the end of
/// the mini-batch; of a micro-batch with segments as many.
inline int samples_in(pipeline_description const& d, job const& j, int micro_batch) {
  if (j.batch.segments != nullptr)
    return micro_batch < d.micro_batches ? segments_in(j, micro_batch, 1)->count : 0;
  int const left = j.batch.samples - micro_batch * d.samples;
  return left < 0 ? 0 : left < d.samples ? left : d.samples;
}
/// The part of the planned rows that is there in the first `micro_batches` of a run, by which its
/// time is compared with that of others; 1 without segments, or without a row.
inline double part_of_rows(job const& j, int micro_batches) {
  double rows = 0, planned = 0;
  for (int mb = 0; mb < micro_batches; ++mb)
    for (int axis = 1; axis <= j.batch.axes; ++axis) {
      rows += segments_in(j, mb, axis)->rows;
      planned += segments_in(j, mb, axis)->planned_rows;
    }
  return rows > 0 ? rows / planned : 1;
}
/// The samples of a run with segments, in all micro-batches.
inline int samples_of_segments(pipeline_description const& d, job const& j) {
  int all = 0;
  for (int mb = 0; mb < d.micro_batches; ++mb) all += segments_in(j, mb, 1)->count;
  return all;
}
/// Index of a micro-batch's first sample, for random bits.
inline long first_sample_in(pipeline_description const& d, job const& j, int micro_batch) {
  segment_list const* const segments = segments_in(j, micro_batch, 1);
  return j.part.first_sample +
         (segments == nullptr ? long(micro_batch) * d.samples : segments->first_sample);
}
/// The first row of a loss among the planned rows of a micro-batch; for number d.losses the end of
/// all rows.
inline int first_row_of(pipeline_description const& d, job const& j, int loss) {
  if (loss == d.losses) return d.loss_rows;
  return loss == 0 ? 0 : j.loss.further.items[loss - 1].rows_before * d.samples;
}
/// The end of the rows of a loss that are there.
inline int end_of_rows(pipeline_description const& d, job const& j, int loss, int micro_batch) {
  segment_list const* const rows = output_segments_in(d, j, micro_batch, loss);
  return rows == nullptr ? first_row_of(d, j, loss + 1) : first_row_of(d, j, loss) + rows->rows;
}

/// Calls use(number) for each output that a run gives; only an inference gives any.
template <class Use>
void for_each_output(pipeline_description const& d, job const& j, Use const& use) {
  for (int i = 0; i < d.losses; ++i)
    if (j.batch.output[i] != nullptr) use(i);
}

/// Fills in the context of job j's launches on a micro-batch, except for memory.
inline void set_context(launch_context& a, pipeline_description const& d, job const& j,
                        int micro_batch) {
  a.valid_samples = samples_in(d, j, micro_batch);
  // The first micro-batch overwrites the gradients of the run before, unless this run accumulates
  // onto them.
  a.accumulate = micro_batch > 0 || j.part.continues;
  a.training = a.wants_gradient = j.what == job::kind::train;
}

/// Base addresses of the memory regions of a chunk and a micro-batch. The address of an operand is
/// an offset in a region.
struct region_bases {
  /// By region; null for a region that the chunk does not have, such as boundary_in of chunk 0.
  char* region[region_count];
  char* at(address const& a) const { return region[int(a.where)] + a.offset; }
  void set(detail::region where, char* p) { region[int(where)] = p; }
};

/// The bases of all regions in the ranks' arenas, for chunk c and the holder that runs it for
/// micro-batch mb. memory(rank): start of an arena. received(transfer): address at which a
/// neighbour's values are read. shift: added to the micro-batch's number in rings. older: bytes
/// from the newest parameters, buffers and copies of parameters to the version that is read. The
/// executor sets the other regions: inputs, labels and random streams.
template <class Memory, class Received>
region_bases arena_bases(pipeline_description const& d, int c, int mb, Memory const& memory,
                         Received const& received, int shift = 0, long older = 0) {
  chunk_description const& chunk = d.chunk[c];
  int const n = mb + shift;  // in rings
  chunk_holder const& holder = d.holder[d.holder_of(c, n)];
  char *const mine = memory(holder.rank), *const values = mine + holder.values,
              *const weights =
                  d.is_copy(holder) ? mine + d.weights_shift(holder) : memory(chunk.rank);
  region_bases b{};
  b.set(region::parameters, weights + chunk.values + older);
  b.set(region::parameter_gradients, weights + chunk.gradients);
  b.set(region::buffers, weights + chunk.buffers + older);
  b.set(region::buffer_sums, weights + chunk.sums);
  b.set(region::copies, weights + chunk.copies + older);
  b.set(region::transposed, weights + chunk.transposed + older);
  b.set(region::record, values + chunk.set_for(mb).records.at(n));
  b.set(region::pending, values + chunk.rings.pending.at(n));
  // Shared by the chunks of the rank, which executes one action at a time.
  b.set(region::scratch, mine + d.rank[holder.rank].scratch);
  b.set(region::boundary_out, values + chunk.rings.boundary.at(n));
  b.set(region::gradient_out, values + chunk.rings.gradient.at(n));
  if (c > 0) b.set(region::boundary_in, received(values_into(d, c, n)));
  if (c + 1 < d.chunks) b.set(region::gradient_in, received(gradients_into(d, c, n)));
  return b;
}

/// Calls need(chunk, milestone, micro-batch) for each dependency of an action: the operands that
/// neighbouring chunks produce, and a free slot for the result. For a negative micro-batch there is
/// nothing to wait for.
///
/// A W or an R alone has no dependency: it reads what F and B of the same micro-batch, earlier on
/// the same rank, have waited for.
template <class Need>
void for_each_need(pipeline_description const& d, action const& a, Need const& need) {
  int const c = a.chunk, mb = a.micro_batch;
  bool const last = c == d.chunks - 1;
  if (a.kind == action_kind::forward) {
    if (c > 0) need(c - 1, milestone::forward, mb);
    // The slot is free once the micro-batch that used it before has been read.
    if (!last) need(c + 1, milestone::release, d.chunk[c].rings.boundary.before(mb));
  } else if (detail::makes_input_gradient(a.kind)) {
    if (!last) need(c + 1, milestone::input_gradient, mb);
    if (c > 0) need(c - 1, milestone::release, d.chunk[c].rings.gradient.before(mb));
  }
}

/// Runs an action by the executor's operations: run(set, program), relay(list of copied),
/// copy_output(output), publish(milestone). Outputs are numbered as losses are: set.outputs.
///
/// U does nothing here: the update is part of the end of the run. R runs the chunk's program of
/// recomputation; in a chunk without one, recomputation is part of the backward program.
///
/// law: a milestone is published after all programs and copies that it stands for
template <class Run, class Relay, class CopyOutput, class Publish>
void run_action(pipeline_description const& d, job const& j, action const& a, Run const& run,
                Relay const& relay, CopyOutput const& copy_output, Publish const& publish) {
  chunk_description const& chunk = d.chunk[a.chunk];
  program_set const& set = chunk.set_for(a.micro_batch);
  if (a.kind == action_kind::forward) {
    run(set, program::forward);
    relay(chunk.passed_values);
    if (a.chunk == d.chunks - 1)
      for_each_output(d, j, [&](int output) { copy_output(set.outputs[output], output); });
    publish(milestone::forward);
    // No backward reads the chunk's input again.
    if (j.what != job::kind::train) publish(milestone::release);
    return;
  }
  if (a.kind == action_kind::recompute) run(set, program::recompute);
  bool const split = set.splits();
  if (detail::makes_input_gradient(a.kind)) {
    run(set, split ? program::backward_input : program::backward);
    relay(set.passed_gradients);
    publish(milestone::input_gradient);
  }
  if (detail::makes_weight_gradient(a.kind)) {
    if (split) run(set, program::backward_weight);
    publish(milestone::release);
  }
}

}  // namespace pp::detail
PIPE_OPTIMIZED_END
