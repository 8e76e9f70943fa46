// SPDX-License-Identifier: BSL-1.0
//
// The records of a lowered model. A layer adds ops to a graph; every later pass reads and writes
// these plain values. Geometry is per sample: an op over R rows handles B * R rows of a micro-batch
// of B samples.
#pragma once

#include <pipe/base/shape.hpp>
#include <pipe/graph/attributes.hpp>
#include <pipe/graph/commit.hpp>
#include <pipe/graph/op_traits.hpp>

namespace pp {

namespace detail {

/// The memory space of an operand. Values are per micro-batch; parameters, buffers, gradients and
/// sums belong to the stage. An operand in `random` is the number of a stream of random bits:
/// kernels read the number from memory, so that ops that differ only in their stream share one
/// kernel.
///
/// law: `operand{}` is an absent operand
enum class space : unsigned char {
  none,
  value,
  input,
  label,
  parameter,
  parameter_gradient,
  parameter_transposed,
  buffer,      // read like a parameter, but written by the layer: see commit_rule
  buffer_sum,  // the statistic summed for a buffer during a mini-batch
  random
};

/// An operand of an op: an index into the records of its space.
struct operand {
  space where = space::none;
  int index = 0;
  friend constexpr bool operator==(operand const&, operand const&) = default;
};

/// Whether an operand is a parameter, as it is or transposed; a buffer is not.
constexpr bool is_parameter(operand x) {
  return x.where == space::parameter || x.where == space::parameter_transposed;
}
/// The operand of value number `index`.
constexpr operand value_operand(int index) { return operand{space::value, index}; }

/// One operation. `leaf` is the layer type that added the op, an index into the model's leaf types:
/// messages print the name of this type, and a map takes its formula from it.
struct op {
  static constexpr int max_in = 6, max_out = 3;
  static constexpr int first_target = 2, loss_weights = 5;  // of a loss, in `in`

  op_kind kind = op_kind::none;
  // Of the rows of the main operand: 1 + the number of the input of token ids whose positions they
  // are, one row for each position, or 0. Of a gradient: that of the forward op.
  unsigned char axis = 0;
  unsigned char key_axis = 0;  // likewise of the rows of keys, of an attention to another sequence
  short unit = 0;  // the top-level layer, from 0 in the opened list; the model is cut between units
  short leaf = 0;
  short ins = 0;  // operands from in[ins] on are absent
  operand in[max_in]{};
  // Values; for a weight-gradient op, gradients of parameters or sums of buffers.
  operand out[max_out]{};
  int rows = 0;     // R, per sample
  int columns = 0;  // width of the result
  int origin = 0;   // the forward op that this op is, or whose gradient it computes
  detail::attributes attributes{};
};

/// The axis of result number `result` of an op, as op::axis: 0 behind a pool, which makes one row
/// of each sample; of the gradient of another sequence's keys that of the keys.
constexpr unsigned char axis_of_result(op const& o, int result) {
  if (o.kind == op_kind::pool) return 0;
  return o.kind == op_kind::attention_gradient && result == 1 ? o.key_axis : o.axis;
}
/// Whether o computes statistics of groups of samples, not of a micro-batch.
constexpr bool norms_groups(op const& o) {
  return o.kind == op_kind::batch_statistics && o.attributes.batch().samples > 0;
}
/// Whether the kernel of o depends on its layer type: a formula, weights of classes, a mask, or the
/// number of a further loss.
constexpr bool reads_layer(op const& o) {
  return has_formula(o.kind) ||
         (o.kind == op_kind::cross_entropy &&
          o.attributes.cross_entropy().term != row_term::log_probability) ||
         (is_attention(o.kind) && o.attributes.attention().scores.is_masked) ||
         (is_loss(o.kind) && o.in[1].where == space::input);  // a further loss
}
/// Returns o. needs: o has attributes of the kind that its row in graph/op_traits.hpp names
constexpr op const& complete(op const& o) {
  if (o.attributes.kind() != attributes_of(o.kind)) op_kind_without::attributes(o.kind);
  return o;
}

/// A copy of an op, for passes that read more than two of its members: compilers evaluate members
/// of a local copy faster than members behind a reference.
constexpr op copy_of(op const& o) { return o; }

/// A value of a micro-batch: an activation, a statistic or a gradient. A value has a size but no
/// shape, since Flatten and similar layers only change how later ops read it.
struct value {
  long elements = 0;  // per sample
  short unit = 0;     // the unit of the op that computes it
};

}  // namespace detail

/// Distributions of initial values. `rotary` and `sinusoidal` are tables
/// (graph/position_tables.hpp): a parameter with such values is never trained.
enum class distribution : unsigned char { constant, uniform, normal, rotary, sinusoidal };

namespace detail {

/// Whether a parameter is computed from graph/position_tables.hpp instead of drawn.
constexpr bool is_table(distribution d) {
  return d == distribution::rotary || d == distribution::sinusoidal;
}

/// The rule by which the initial values of a parameter are drawn.
///
/// law: initial element e of parameter i is a function of (seed, i, e) only
struct initializer {
  distribution kind = distribution::constant;
  /// By kind: the constant; the half width; the standard deviation; the base of a table's
  /// wavelengths.
  float scale = 0;
};

}  // namespace detail

namespace custom {

/// The role of a parameter, by which some optimizers choose their rule.
enum class tensor_kind : unsigned char {
  vector,  // biases, scales, shifts
  matrix,  // the right side of a contraction, [inputs, outputs]
  table,   // rows that are looked up or added: embeddings, positions
};

}  // namespace custom

namespace detail {

/// A tensor that a stage keeps between steps: a parameter, or a buffer.
struct parameter {
  sample_shape form{};  // of 1 to 4 extents; a vector may have one row
  short unit = 0, leaf = 0;
  short tied_to = -1;  // the earlier parameter with which it shares its memory, or -1
  initializer initial{};
  custom::tensor_kind kind = custom::tensor_kind::vector;
  bool trained = true;     // false: it has no gradient and no optimizer state
  double rate_scale = 1;   // multiplies the optimizer's learning rate
  double decay_scale = 1;  // multiplies its weight decay: 0 for biases and norms
  bool is_buffer = false;  // never trained; written by `commit`
  commit_rule commit{};    // of a buffer
  /// The extents of the matrix that products, transpositions and matrix optimizers see: the product
  /// of all extents but the last, and the last.
  constexpr int rows() const { return form.rows(); }
  constexpr int columns() const { return form.columns(); }
  constexpr long elements() const { return form.elements(); }
  /// Whether the tensor is a buffer that steps write; constant buffers are not written.
  constexpr bool is_committed() const { return is_buffer && commit.momentum > 0; }
};

}  // namespace detail

}  // namespace pp
