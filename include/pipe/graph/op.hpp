// SPDX-License-Identifier: BSL-1.0
//
// The records that a model becomes. A layer adds ops to a graph; every pass after that reads and
// writes these plain values. Geometry is per sample: an op over R rows handles B * R rows of a
// micro-batch of B samples.
#pragma once

#include <pipe/base/shape.hpp>
#include <pipe/graph/attributes.hpp>
#include <pipe/graph/commit.hpp>
#include <pipe/graph/op_traits.hpp>

namespace pp {

/// Where an operand lives. Values are per micro-batch; parameters, buffers, gradients and sums
/// belong to the stage. `random` is the number of a stream of random bits: it is read from memory,
/// so that ops that differ only in their stream share one kernel.
/// law: `operand{}` is no operand.
enum class space : unsigned char {
  none,
  value,
  input,
  label,
  parameter,
  parameter_gradient,
  parameter_transposed,
  buffer,      // like a parameter, but written by the layer: see commit_rule
  buffer_sum,  // what is added up for it during a mini-batch
  random
};

struct operand {
  space where = space::none;
  int index = 0;
  friend constexpr bool operator==(operand const&, operand const&) = default;
};

constexpr bool is_parameter(operand x) {
  return x.where == space::parameter || x.where == space::parameter_transposed;
}
constexpr operand value_operand(int index) { return operand{space::value, index}; }

/// One operation. `leaf` names the layer type it came from (an index into the model's leaf types):
/// messages print it, and a map takes its formula from it.
struct op {
  static constexpr int max_in = 6, max_out = 3;
  static constexpr int first_target = 2, loss_weights = 5;  // of a loss, in `in`

  op_kind kind = op_kind::none;
  short unit =
      0;  // the top-level layer, counted from 0 in the opened list: where the model may be cut
  short leaf = 0;
  short ins = 0;  // operands of `in` that may be there: those from this one on are absent
  operand in[max_in]{};
  operand out[max_out]{};
  int rows = 0;     // R, per sample
  int columns = 0;  // width of the result
  int origin = 0;   // the forward op that this one is, or differentiates
  pp::attributes attributes{};
};

/// Whether o takes something from its layer type.
constexpr bool reads_layer(op const& o) {
  return has_formula(o.kind) || (o.kind == op_kind::cross_entropy &&
                                 o.attributes.cross_entropy().term != row_term::log_probability);
}
/// needs: o has the attributes that the row of its kind names
constexpr op const& complete(op const& o) {
  if (o.attributes.kind() != attributes_of(o.kind)) op_kind_without::attributes(o.kind);
  return o;
}

/// For passes that look at more than one or two members of an op of a graph: compilers evaluate
/// these faster in a copy.
constexpr op copy_of(op const& o) { return o; }

/// A per-micro-batch value: an activation, a statistic or a gradient. Flatten and friends change
/// only how later ops look at it, so a value has a size and no shape.
struct value {
  long elements = 0;  // per sample
  short unit = 0;     // of the op that makes it
};

/// The last two are tables of graph/tables.hpp: such a parameter is never trained.
enum class distribution : unsigned char { constant, uniform, normal, rotary, sinusoidal };
constexpr bool is_table(distribution d) {
  return d == distribution::rotary || d == distribution::sinusoidal;
}

/// law: initial element e of parameter i is a function of (seed, i, e) only.
struct initializer {
  distribution kind = distribution::constant;
  float scale =
      0;  // the constant; the half width; the standard deviation; the base of a table's wavelengths
};

/// What an optimizer may want to know of a parameter beside its extents.
enum class tensor_kind : unsigned char {
  vector,  // biases, scales, shifts
  matrix,  // the right side of a contraction, [inputs, outputs]
  table,   // rows that are looked up or added: embeddings, positions
};

/// What a stage keeps between steps: a parameter, or a buffer.
struct parameter {
  shape form{};  // of 1 to 4 extents; a vector may have one row
  short unit = 0, leaf = 0;
  short tied_to = -1;  // the earlier parameter that this one is the same as, or -1
  initializer initial{};
  tensor_kind kind = tensor_kind::vector;
  bool trained = true;     // false: it has no gradient and no optimizer state
  double rate_scale = 1;   // multiplies the optimizer's learning rate
  double decay_scale = 1;  // multiplies its weight decay: 0 for biases and norms
  bool is_buffer = false;  // and so not trained
  commit_rule commit{};    // of a buffer
  /// All extents but the last as one, and the last: what a matrix product, a transposition or an
  /// optimizer of matrices sees.
  constexpr int rows() const { return form.rows(); }
  constexpr int columns() const { return form.columns(); }
  constexpr long elements() const { return form.elements(); }
  /// Whether it is a buffer that steps write.
  constexpr bool is_committed() const { return is_buffer && commit.momentum > 0; }
};

}  // namespace pp
