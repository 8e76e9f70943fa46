// SPDX-License-Identifier: BSL-1.0
//
// A compiled pipeline as the runtime sees it: constant tables, offsets and kernel numbers. It does
// not depend on the model's type, so the code that runs a pipeline is compiled once per element
// type.
#pragma once

#include <pipe/backend/host/arguments.hpp>
#include <pipe/base/dtype.hpp>
#include <pipe/base/view.hpp>
#include <pipe/graph/further_loss.hpp>
#include <pipe/optim/optimizer.hpp>
#include <pipe/passes/address.hpp>
#include <pipe/passes/memory.hpp>
#include <pipe/runtime/device_blocks.hpp>
#include <pipe/schedule/action.hpp>
#include <pipe/schedule/rank_instruction.hpp>
#include <pipe/transport/slot_part.hpp>

namespace pp {

namespace detail {

/// Ring buffer of a chunk's holder, which runs every `step`-th micro-batch: `slots` slots of
/// `stride` bytes. Its n-th micro-batch uses slot n mod slots.
///
/// units: bytes; `offset` counts from the start of the holder's values
/// needs: slots > 0
struct ring {
  long offset = 0, stride = 0;
  int slots = 1, step = 1;
  constexpr long at(int micro_batch) const {
    return offset + stride * (micro_batch / step % slots);
  }
  /// The micro-batch that used the same slot before this micro-batch; negative: none.
  constexpr int before(int micro_batch) const { return micro_batch - slots * step; }
  /// The micro-batch that uses the same slot next.
  constexpr int after(int micro_batch) const { return micro_batch + slots * step; }
  constexpr long bytes() const { return stride * slots; }
};

/// The launches of a program and their operands: launch l reads operands [l.first, l.first +
/// l.count). A training step runs the first `trained` launches: fewer than `count` in a forward
/// program whose loss is computed by backward.
struct program_view {
  launch const* launches = nullptr;
  placed_operand const* operands = nullptr;
  int count = 0, trained = 0;
};

/// Whether a launch of a program adds to gradients of parameters, or to sums of buffers. Operands
/// that the launch only reads have 0 elements.
inline bool adds_to_sums(program_view const& view, int number) {
  launch const& l = view.launches[number];
  for (int k = 0; k < l.count; ++k) {
    placed_operand const& o = view.operands[l.first + k];
    if (o.elements > 0 &&
        (o.at.where == region::parameter_gradients || o.at.where == region::buffer_sums))
      return true;
  }
  return false;
}

/// The programs of a stage, either with all values kept for backward or with some recomputed.
struct program_set {
  program_view programs[program_count];
  ring records;  ///< values kept for backward, by micro-batch
  /// Last chunk, by loss: what its chain makes, which is an output of the model.
  address outputs[most_losses];
  /// First chunk, by input: where backward leaves its gradient; none if it has none.
  address input_gradients[max_inputs];
  view<copied> passed_gradients;  ///< gradients that pass through the stage unchanged
  /// Whether B and W are two programs, not one. weight_program: the program that completes
  /// gradients.
  constexpr bool splits() const { return programs[int(program::backward)].launches == nullptr; }
  constexpr program_view const& weight_program() const {
    return programs[int(splits() ? program::backward_weight : program::backward)];
  }
};

/// Location of a parameter or a buffer in its chunk's memory.
struct parameter_place {
  int index = 0;  ///< number in the model
  /// `shared`: a later use of a shared parameter; the first use is updated.
  bool trained = true, shared = false;
  /// Extents of the matrix that products and transpositions see: see parameter::rows().
  int rows = 0, columns = 0;
  long offset = 0;         ///< bytes from the start of the regions of parameters and of gradients
  long transposed = -1;    ///< offset of the transposed copy, or -1: none
  bool in_panels = false;  ///< the layout of the transposed copy: see copy_layout
  bool is_buffer = false;
  commit_rule commit{};  ///< update rule of a buffer
  int layer = 0;         ///< top-level
  constexpr long elements() const { return long(rows) * columns; }
  /// Whether this is a buffer that training steps update, from a sum.
  constexpr bool is_committed() const { return is_buffer && commit.momentum > 0; }
  /// Whether micro-batches may add to the parameter's gradient, or to the buffer's sum.
  constexpr bool has_sum() const { return is_buffer ? is_committed() : trained; }
};

/// A parameter shared with an earlier layer (weight tying). Each place has its own copy of the
/// values and its own gradient; the runtime keeps the copies equal.
struct tie {
  int chunk = 0, owner_chunk = 0;
  /// `owner`: the parameter's first place; `place`: a later place, in chunk `chunk`.
  parameter_place place, owner;
};

/// The most micro-batches that one holder of the last chunk runs: the room for a loss in its
/// memory.
constexpr int losses_of_holder(int micro_batches, int holders) {
  return (micro_batches + holders - 1) / holders;
}

struct chunk_description;

/// A contiguous range of a chunk's parameters that one call of the optimizer updates.
///
/// units: elements
/// law:   the padding after a parameter is in the parameter's range, but not in the shape of a
///        whole parameter
struct update_range {
  long begin = 0, end = 0;       ///< in the regions of parameters and of gradients
  long state = 0;                ///< start of the range's optimizer state
  bool whole = false;            ///< the range is one parameter, for an optimizer of whole tensors
  custom::tensor_shape shape{};  ///< of the parameter if `whole`, else a vector of all elements
  double rate_scale = 1, decay_scale = 1;  ///< factors of the learning rate and the weight decay
  long state_size = 0;                     ///< of the range's optimizer state, padded
};

/// A block of a parameter's gradient and its squared norm, before and after clipping by value. For
/// a block of a buffer's sum both are 0, or NaN if an element is not finite.
struct gradient_block {
  /// A constant, so that sums over blocks have the same bits for any number of threads.
  static constexpr long most_elements = most_undivided_elements;
  chunk_description const* chunk = nullptr;
  parameter_place const* of = nullptr;
  long begin = 0;
  double square = 0, clamped_square = 0;
};
/// Number of blocks of a parameter's gradient or a buffer's sum; 0 for a parameter or a buffer that
/// steps do not change.
constexpr long blocks_of(parameter_place const& p) {
  constexpr long most = gradient_block::most_elements;
  bool const changes = p.is_committed() || (p.trained && !p.shared);
  return changes ? (p.elements() + most - 1) / most : 0;
}

/// A holder of a chunk: a rank that runs it, for all micro-batches or for some.
struct chunk_holder {
  int chunk = 0, rank = 0;
  long values = 0;  ///< offset in the rank's arena of the chunk's rings: records and boundaries
  /// Offset of the weights in the owner's arena or, where ranks do not share memory, of the
  /// holder's copy in its own arena.
  long weights = 0;
};

/// Sizes of the regions and parts of a chunk's memory.
///
/// units: bytes
struct chunk_sizes {
  /// Of the parameters, their gradients, their transposed copies, the buffers, and the copies of
  /// parameters in the type of values.
  long parameters = 0, trained = 0, transposed = 0, buffers = 0, copies = 0;
  /// Of the parameters that replicas divide, which come first in these regions. With
  /// divides_gradients their gradients, and with ZeRO<3> their values, are elsewhere: the offsets
  /// of the regions count as if they were there.
  long divided = 0, divided_transposed = 0;
  long state = 0, host_state = 0;  ///< of the optimizer's state, and of it in the host's memory
  long weights = 0, values = 0;    ///< of the owner's part, and of each holder's
  /// Of a holder's copy of the weights: the first bytes of the owner's part, up to the optimizer's
  /// state. 0: holders share the owner's memory.
  long copy = 0;
};
/// Versions of a chunk's weights, where steps overlap. Slot 0 is the regions of parameters, buffers
/// and transposed copies, one after the other; further slots of the same size begin at `begin`.
///
/// units: bytes
struct version_layout {
  int slots = 1;
  long begin = 0, bytes = 0;
  /// From the optimizer's state to the copy of the state before the newest update; 0: no such copy
  /// is kept.
  long to_kept_state = 0;
};
/// The slots of micro-batches in the values of a chunk's holder, but for records.
struct chunk_rings {
  /// Values that B keeps for W; the chunk's output, for the next chunk; the gradient of the chunk's
  /// input, for the previous chunk.
  ring pending, boundary, gradient;
  /// Slots for values that are copied from the neighbours; empty if neighbours' values are read in
  /// place.
  ring received, received_gradient;
};

/// A stage: its programs, and the layout of its memory. The first holder owns the weights and the
/// gradients. Other holders read weights and add to gradients in the owner's memory or, where ranks
/// do not share memory, have copies.
///
/// units: bytes; offsets count from the start of the owner's arena, offsets of rings from the start
///        of each holder's values; parameter_place and update_range have their own units
struct chunk_description {
  int rank = 0;                       ///< the owner's
  int first_holder = 0, holders = 1;  ///< in pipeline_description::holder
  /// Programs that keep all values for backward, and programs that recompute some. A set that no
  /// micro-batch uses is empty.
  program_set keeping, dropping;
  int first_kept = 0;  ///< micro-batches from this one on use `keeping`, earlier ones `dropping`
  program_set const& set_for(int micro_batch) const {
    return micro_batch >= first_kept ? keeping : dropping;
  }
  view<copied> passed_values;  ///< values that pass through the stage unchanged
  /// With Lengths, if the transport copies: the values in a slot of `boundary` and the gradients in
  /// a slot of `gradient`; else empty.
  view<transports::slot_part> value_parts, gradient_parts;
  view<parameter_place> parameters;
  view<update_range> updates;
  /// Offsets of the flat regions of parameters. With ZeRO the optimizer's state is at the arena's
  /// end instead, with OffloadState in the host's memory.
  long values = 0, gradients = 0, transposed = 0, state = 0;
  long buffers = 0, sums = 0;  ///< offsets of buffers, and of sums of buffers that steps update
  long average = 0;            ///< offset of the averages of trained parameters, if any
  long copies = 0;             ///< offset of copies of the parameters in the type of values, if any
  long host_state = 0;         ///< offset of the optimizer's state in the rank's state on the host
  chunk_sizes sizes{};
  version_layout versions{};
  chunk_rings rings{};
  /// Size of the range of gradients and of buffers' sums, which is added up over the accumulations
  /// of a mini-batch.
  constexpr long summed_bytes() const { return state - gradients; }
  long in_level = 0;  ///< offset of the chunk in each level of the rank's accumulation sums
  /// Offset of a parameter or a buffer.
  constexpr long values_of(parameter_place const& p) const {
    return (p.is_buffer ? buffers : values) + p.offset;
  }
  /// Bytes from slot 0 of the versions to another slot.
  constexpr long shift_of(int slot) const {
    return slot == 0 ? 0 : versions.begin + (slot - 1) * versions.bytes - values;
  }
  constexpr bool has_copies() const { return sizes.copy > 0; }
  /// Size of the chunk's memory on the owner's rank.
  constexpr long bytes() const { return sizes.weights + sizes.values; }
  /// Squared norms of gradients, in the rank's bookkeeping: doubles [parameters, 2], before and
  /// after clipping by value.
  long norms = 0;
  long norms_before = 0;  ///< size of the norms of all earlier chunks
};

/// A rank: its lists of actions, and the layout of the memory that its chunks share.
///
/// units: bytes; offsets count from the start of the arena
struct rank_description {
  /// Actions in the order of execution; evaluation and inference have forwards only.
  view<action> training, evaluation;
  /// If steps overlap freely: the actions of a period, some of which may be of later mini-batches.
  /// Their versions count from 0, the newest at the start of the period: see unflushed.
  view<action> flow;
  /// Whether forwards read weights that are predicted for their backwards. Predicted weights are in
  /// the slot of the version before the newest.
  bool predicts = false;
  /// The most actions of a run, or of a period.
  constexpr int most_actions() const {
    int const most = training.count > evaluation.count ? training.count : evaluation.count;
    return flow.count > most ? flow.count : most;
  }
  /// Shared by the rank's chunks; there is one workspace for each thread.
  long scratch = 0, workspace = 0;
  /// Staged copies of the inputs that this rank reads, and at the end of the labels: on the host
  /// only of a partly filled micro-batch; on a device of the whole mini-batch. -1: not staged.
  long staging[max_inputs + 1]{-1, -1, -1, -1, -1};
  /// On a device, if mini-batches are prefetched: the same for the next mini-batch, with all its
  /// accumulations. For several accumulations there are two rooms, one behind the other: see
  /// prefetch_rooms.
  long prefetched[max_inputs + 1]{-1, -1, -1, -1, -1};
  /// Doubles: losses by row of a micro-batch, and each loss by micro-batch. Both are on the last
  /// chunk's rank; `losses` also on every rank if the transport copies, and on rank 0 if rank 0 is
  /// on another device.
  long row_losses = -1, losses = -1;
  /// norms: the squared norms of other ranks' chunks, if the transport copies. received_tie: the
  /// gradient of a shared parameter's later place, if the transport copies or there are several
  /// devices.
  long norms = 0, received_tie = 0;
  /// If the transport copies and steps overlap: a ring of reports, each with the squared norms of
  /// all chunks, and the losses.
  long reports = 0, report_stride = 0;
  /// If there may be replicas: room for the gradients that other replicas send, in two halves. On
  /// the host with ZeRO the room is at the arena's end instead.
  long replica_room = 0, replica_room_bytes = 0;
  long executed = 0;  ///< executed_action records of the last run or steps: see recorded_steps
  long blocks = 0, block_count = 0;  ///< gradient_block records of the rank's chunks
  long device_bookkeeping = 0, device_bookkeeping_bytes = 0;  ///< of the executor, on a device
  long staging_bytes = 0, bookkeeping_bytes = 0;  ///< from `staging` on; from `row_losses` on
  /// fixed_bytes: offset of the last part of the arena, whose size depends on the number of
  /// replicas: see arena_end. level_bytes: size of a level of the partial sums over accumulations.
  long fixed_bytes = 0, level_bytes = 0;
  long bytes = 0;       ///< size of the arena, with one replica
  long host_bytes = 0;  ///< page-locked memory of the host: see OffloadState
};

}  // namespace detail

static_assert(detail::max_inputs == 4, "as many -1 in `staging`, and one");

namespace detail {

/// The actions of a rank interleaved with the rank's sends and receives, for a transport that
/// copies: see communicate().
struct rank_instructions {
  view<rank_instruction> training, evaluation;
};

/// An output of a micro-batch: its bytes, and the axis of its rows, see op::axis.
struct output_record {
  long bytes = 0;
  unsigned char axis = 0;
};

/// A compiled pipeline. A plain aggregate of constants and pointers to constant tables; copying it
/// is cheap.
struct pipeline_description {
  int ranks = 1, chunks = 1, micro_batches = 1, samples = 1;
  device_blocks devices{};  ///< where the ranks of a backend with its own memory are
  int accumulations = 1;    ///< of a mini-batch: see GradientAccumulation
  int accumulation_room =
      1;         ///< even shares that a replica has room for: see GradientAccumulationBySpeed
  int zero = 0;  ///< level of ZeRO: what replicas divide
  bool divides_gradients =
      false;               ///< also gradients during a run: accumulations have one micro-batch
  int threads = 1;         ///< per rank
  int pairs = 1;           ///< most pairs of holders at a boundary: see pairs_of
  int copied_holders = 0;  ///< most holders of a chunk with copies of its weights
  int report_slots = 0;    ///< reports in progress, if steps overlap and are copied
  int element_bytes = 4;   ///< of parameters and gradients
  short const* parts = nullptr;  ///< by kernel group: number of parts of a launch
  long workspace_bytes = 0;      ///< per thread
  int losses = 1;                ///< of the model
  int loss_rows = 0;             ///< terms of all losses in a micro-batch
  long rows = 0;                 ///< with Lengths: the most of a micro-batch on an axis
  chunk_description const* chunk = nullptr;
  chunk_holder const* holder = nullptr;  ///< chunk by chunk
  rank_description const* rank = nullptr;
  int parameter_count = 0;                          ///< in the model
  rank_instructions const* instructions = nullptr;  ///< by rank, if the transport copies
  view<int> streams;                                ///< numbers of the streams of random bits
  view<tie> ties;
  int inputs = 1;
  /// Sizes of a micro-batch as kernels read and write it: real-valued inputs and outputs are in
  /// value_type. Outputs by loss.
  long input_bytes[max_inputs]{}, label_bytes = 0;
  output_record output[most_losses]{};
  /// Whether an input is converted to value_type: real numbers, except inputs of the loss.
  bool input_is_converted[max_inputs]{};
  dtype value_type = dtype::f32;
  bool scales_loss = false;  ///< backward computes gradients of the loss times a scale factor
  /// Whether kernels on the host read a converted copy of an input; bytes of a micro-batch of the
  /// input, or of an output, in the caller's memory, where real numbers have the type of
  /// parameters.
  constexpr bool is_copied_input(int input) const {
    return input < inputs && input_is_converted[input] && size_of(value_type) != element_bytes;
  }
  constexpr long given_bytes(int input) const {
    return is_copied_input(input) ? in_numbers(input_bytes[input]) : bytes_of(input);
  }
  constexpr long in_numbers(long bytes) const {
    return bytes / size_of(value_type) * element_bytes;
  }
  /// Number of the holder that runs a chunk for a micro-batch.
  constexpr int holder_of(int c, int micro_batch) const {
    return chunk[c].first_holder + micro_batch % chunk[c].holders;
  }
  /// Number of all holders.
  constexpr int holders() const {
    return chunk[chunks - 1].first_holder + chunk[chunks - 1].holders;
  }
  /// Bytes of an input per micro-batch; of the labels for input number `inputs`.
  constexpr long bytes_of(int input) const {
    return input < inputs ? input_bytes[input] : label_bytes;
  }
  /// Size of all arenas.
  constexpr long bytes() const {
    long sum = 0;
    for (int r = 0; r < ranks; ++r) sum += rank[r].bytes;
    return sum;
  }
  /// Whether a holder has a copy of its chunk's weights. weights_shift: the offset of the copy in
  /// the holder's arena minus the offset of the weights in the owner's arena.
  ///
  /// law:   weights_shift is 0 for the owner
  /// units: bytes
  constexpr bool is_copy(chunk_holder const& h) const {
    return chunk[h.chunk].has_copies() && &h != holder + chunk[h.chunk].first_holder;
  }
  constexpr long weights_shift(chunk_holder const& h) const {
    return h.weights - holder[chunk[h.chunk].first_holder].weights;
  }
  bool has_buffers = false;  ///< the model has buffers that steps update
  /// average += (1 - average_decay) * (parameter - average), after each update; negative: no
  /// averages of the trained parameters are kept
  double average_decay = -1;
  constexpr bool averages() const { return average_decay >= 0; }
};

}  // namespace detail

}  // namespace pp
