// SPDX-License-Identifier: BSL-1.0
//
// A compiled pipeline as the runtime sees it: pointers to constant tables, offsets, and the
// kernels. No template over the model is left, so the code that runs a pipeline is compiled once
// per element type.
#pragma once

#include <pipe/backend/host/arguments.hpp>
#include <pipe/base/dtype.hpp>
#include <pipe/optim/optimizer.hpp>
#include <pipe/passes/address.hpp>
#include <pipe/passes/memory.hpp>
#include <pipe/schedule/action.hpp>
#include <pipe/schedule/rank_step.hpp>

namespace pp {

namespace detail {

/// `slots` pieces of `stride` bytes, reused round and round by micro-batch number.
struct ring {
  long offset = 0, stride = 0;
  int slots = 1;
  constexpr long at(int micro_batch) const { return offset + stride * (micro_batch % slots); }
  constexpr long bytes() const { return stride * slots; }
};

struct program_view {
  launch const* launches = nullptr;
  placed_operand const* operands = nullptr;
  int count = 0;
};

/// The programs of a stage, with everything kept for backward or with values that are made again.
struct program_set {
  program_view programs[program_count];
  ring records;    ///< of the micro-batches that use this set
  address output;  ///< of the last chunk: the model's output before the loss
  copied const* passed_gradients = nullptr;  ///< that leave without being made on the way
  int passed_gradient_count = 0;
};

/// A parameter or a buffer in its chunk's memory.
struct parameter_place {
  int index = 0;  ///< in the model
  bool trained = true,
       shared = false;  ///< shared with an earlier place, which is the one that is updated
  int rows = 0, columns = 0;
  long offset = 0;       ///< of the parameter and of its gradient, from the region's start
  long transposed = -1;  ///< of the transposed copy, or -1
  bool is_buffer = false;
  commit_rule commit{};  ///< of a buffer
  constexpr long elements() const { return long(rows) * columns; }
  /// Whether steps write it, as a buffer: then it has a sum.
  constexpr bool is_committed() const { return is_buffer && commit.momentum > 0; }
};

/// A parameter that is the same as one of an earlier layer. Each place has a copy of the values and
/// a gradient of its own.
struct tie {
  int chunk = 0, owner_chunk = 0;
  parameter_place place, owner;
};

struct chunk_description;

/// A run of a chunk's parameters that one call of the optimizer updates. Numbers are counted, not
/// bytes.
struct update_range {
  long begin = 0, end = 0;  ///< in the parameters, and in their gradients
  long state = 0;           ///< where its optimizer state begins
  bool whole = false;       ///< one parameter, for an optimizer that works on whole tensors
  tensor_shape shape{};     ///< of that parameter; of a run of single elements a vector of them all
  double rate_scale = 1, decay_scale = 1;  ///< of the learning rate and the weight decay
};

/// Some of a parameter's gradient, and its squared norm, before and after clipping by value; or of
/// a buffer's sum, and 0, or NaN if not all of it is finite.
struct gradient_block {
  static constexpr long most_elements = 1L << 15;
  chunk_description const* chunk = nullptr;
  parameter_place const* of = nullptr;
  long begin = 0;
  double square = 0, clamped_square = 0;
};
/// How many blocks a parameter's gradient or a buffer's sum has; what does not change here has
/// none.
constexpr long blocks_of(parameter_place const& p) {
  constexpr long most = gradient_block::most_elements;
  bool const changes = p.is_committed() || (p.trained && !p.shared);
  return changes ? (p.elements() + most - 1) / most : 0;
}

/// One stage: its programs, and where its memory is in its rank's arena (bytes).
struct chunk_description {
  int rank = 0;
  program_set keeping, dropping;
  int first_kept = 0;  ///< micro-batches from this one on use the first, those before it the second
  program_set const& set_for(int micro_batch) const {
    return micro_batch >= first_kept ? keeping : dropping;
  }
  parameter_place const* parameters = nullptr;
  int parameter_count = 0;
  update_range const* updates = nullptr;
  int update_count = 0;
  long values = 0, gradients = 0, transposed = 0,
       state = 0;              ///< offsets of the flat parameter regions
  long buffers = 0, sums = 0;  ///< of the buffers; of what is added up for those that steps write
  long buffer_bytes = 0;
  /// Where a parameter or a buffer lies.
  constexpr long values_of(parameter_place const& p) const {
    return (p.is_buffer ? buffers : values) + p.offset;
  }
  long average = 0;  ///< of the trained parameters' averages, if there are any
  long copies = 0,
       copy_bytes = 0;  ///< of all parameters' copies in the type of values, if there are any
  long parameter_bytes = 0, trained_bytes = 0;  ///< of the values; of the gradients
  long transposed_bytes = 0;                    ///< of the copies
  ring pending, boundary, gradient;
  copied const* passed_values = nullptr;  ///< that leave without being made on the way
  int passed_value_count = 0;
  long bytes = 0;  ///< of all of the above
  /// Slots of its own for what the neighbours hand over: where an edge copies, else nothing.
  ring received, received_gradient;
  long norms = 0;  ///< two doubles for each parameter, in the rank's bookkeeping: its gradient's
                   ///< squared norm, and when clamped
  long norms_before = 0;  ///< bytes of those of all chunks before it
};

struct rank_description {
  action const* training = nullptr;
  int training_count = 0;
  action const* evaluation = nullptr;
  int evaluation_count = 0;
  long scratch = 0,
       workspace = 0;  ///< offsets, shared by the rank's chunks; every thread has a workspace
  /// Where an input lies (the last: the labels) that chunks of this rank read and that cannot be
  /// read where the caller has it: on the host one micro-batch, of which only some samples are
  /// there; on a device the whole mini-batch. -1: not here.
  long staging[max_inputs + 1]{-1, -1, -1, -1, -1};
  long row_losses = -1,
       losses = -1;  ///< doubles: by row of a micro-batch, by micro-batch; where the last chunk is
                     ///< (`losses` on every rank, where a transport copies)
  /// Where a transport copies: the squared norms of other ranks' chunks, the gradient of a shared
  /// parameter's later place.
  long norms = 0, received_tie = 0;
  long executed = 0;                              ///< the actions of the last run, with their times
  long blocks = 0, block_count = 0;               ///< of the gradients of its chunks
  long books = 0, book_bytes = 0;                 ///< on a device: its machine's
  long staging_bytes = 0, bookkeeping_bytes = 0;  ///< from `staging` on; from `row_losses` on
  long bytes = 0;                                 ///< of the arena: of all of this and the chunks
};

}  // namespace detail

static_assert(max_inputs == 4, "as many -1 in `staging`, and one");

namespace detail {

/// The actions of a rank with its sends and receives between them: see communicate().
struct rank_steps {
  detail::rank_step const* training = nullptr;
  int training_count = 0;
  detail::rank_step const* evaluation = nullptr;
  int evaluation_count = 0;
};

struct pipeline_description {
  int ranks = 1, chunks = 1, micro_batches = 1, samples = 1;
  int threads = 1;               ///< of each rank
  short const* parts = nullptr;  ///< by kernel group: in how many parts its launches run
  long workspace_bytes = 0;      ///< of a thread
  int loss_rows = 0;             ///< of a micro-batch: the terms of its loss
  chunk_description const* chunk = nullptr;
  rank_description const* rank = nullptr;
  int parameter_count = 0;            ///< of the model
  rank_steps const* steps = nullptr;  ///< by rank, where the transport copies
  int const* streams = nullptr;       ///< of random bits: their numbers
  int stream_count = 0;
  tie const* ties = nullptr;
  int tie_count = 0;
  int inputs = 1;
  /// Of a micro-batch, as kernels read and write them: numbers of an input and of the output are of
  /// the type of values.
  long input_bytes[max_inputs]{}, label_bytes = 0, output_bytes = 0;
  bool input_is_converted[max_inputs]{};  ///< to the type of values: real numbers, but not those of
                                          ///< the loss
  dtype value_type = dtype::f32;
  bool scales_loss = false;  ///< gradients are of a scaled loss until they are used
  constexpr long bytes_of(int input) const {
    return input < inputs ? input_bytes[input] : label_bytes;
  }
  constexpr long bytes() const {
    long sum = 0;
    for (int r = 0; r < ranks; ++r) sum += rank[r].bytes;
    return sum;
  }
  bool has_buffers = false;  ///< that steps write
  bool averages = false;     ///< of the trained parameters are kept, with this decay
  double average_decay = 0;
};

}  // namespace detail

}  // namespace pp
