// SPDX-License-Identifier: BSL-1.0
//
// The records that a model becomes. A layer adds ops to a graph; every pass after that reads and
// writes these plain values. Geometry is per sample: an op over R rows handles B * R rows of a
// micro-batch of B samples.
#pragma once

#include <cstdint>

#include <pipe/base/shape.hpp>

namespace pp {

enum class op_kind : unsigned char {
  none,
  // forward
  lookup,    // ids[R], table[V, C]            -> y[R, C]
  matmul,    // x[R, K], w[K, N]               -> y[R, N]
  bias,      // x[R, C], b[C]                  -> y          pointwise
  row_bias,  // x[R, C], t[R, C]               -> y          pointwise: one row of t per position
  map,       // x                              -> y          pointwise: a formula
  add,       // x, z                           -> y          pointwise
  dropout,   // x, stream                      -> y          pointwise; and its own gradient: dy,
             // stream -> dx
  concat,    // x[R, K], z[R, C - K]           -> y[R, C]
  norm,      // x[R, C], gamma[C], beta[C]?    -> y, statistics[R, 2]
  softmax,   // x[R, C]                        -> y          along each row
  gate,  // x[R, 2C]                       -> y[R, C]    a formula of one half times the other half
  pool,  // x[S, C], ids[S]?               -> y[1, C]    a mean of rows, or one of them
  attention,  // qkv[R, C + 2K], -, table?, ids? -> y[R, C], lse[R, H]; or q[R, C], kv[S, 2K], -,
              // ids?
  // losses: further targets are in[2] to in[4], weights[R] in[5]; the result is their gradient, and
  //         they add to the step's loss
  cross_entropy,  // logits[R, V], labels[R]        -> dlogits
  squared_error,  // x[R, C], target[R, C]          -> dx
  element_loss,   // x[R, C], target[R, C]          -> dx         a formula
  custom,         // x, p0?, p1?, p2?               -> y, saved?
  // backward, input gradients
  matmul_input_gradient,  // dy[R, N], w            -> dx[R, K]
  map_gradient,           // dy, x or y             -> dx         pointwise
  slice,                  // dy[R, K]               -> dx[R, C]: columns from `keys` on
  norm_gradient,          // dy, x, gamma, statistics -> dx
  softmax_gradient,       // dy, y                  -> dx
  gate_gradient,          // dy[R, C / 2], x[R, C]  -> dx[R, C]
  pool_gradient,          // dy[1, C], ids[S]?      -> dx[S, C]
  attention_gradient,  // dy, qkv, y, lse, table?, ids? -> dqkv; or dy, q, y, lse, kv, ids? -> dq?,
                       // dkv?
  custom_input_gradient,  // dy, x, saved?, p0?, p1?, p2? -> dx
  // backward, weight gradients
  matmul_weight_gradient,   // x[R, K], dy[R, N]    -> dw[K, N]
  bias_gradient,            // dy[R, C]             -> db[C]
  row_bias_gradient,        // dy[R, C]             -> dt[R, C]
  norm_parameter_gradient,  // dy, x, statistics    -> dgamma, dbeta?
  lookup_gradient,          // dy[R, C], ids[R]     -> dtable[V, C]
  custom_weight_gradient,   // dy, x, saved?          -> dp0, dp1?, dp2?
  // only as the anchor of a kernel group: a chain of pointwise ops with no contraction or row
  // kernel to join
  pointwise,
};
inline constexpr int op_kinds = int(op_kind::pointwise) + 1;

constexpr char const* name_of(op_kind k) {
  switch (k) {
    case op_kind::none: return "none";
    case op_kind::lookup: return "lookup";
    case op_kind::matmul: return "matmul";
    case op_kind::bias: return "bias";
    case op_kind::row_bias: return "row_bias";
    case op_kind::map: return "map";
    case op_kind::add: return "add";
    case op_kind::dropout: return "dropout";
    case op_kind::concat: return "concat";
    case op_kind::slice: return "slice";
    case op_kind::norm: return "norm";
    case op_kind::softmax: return "softmax";
    case op_kind::gate: return "gate";
    case op_kind::pool: return "pool";
    case op_kind::attention: return "attention";
    case op_kind::cross_entropy: return "cross_entropy";
    case op_kind::squared_error: return "squared_error";
    case op_kind::element_loss: return "element_loss";
    case op_kind::matmul_input_gradient: return "matmul_input_gradient";
    case op_kind::map_gradient: return "map_gradient";
    case op_kind::norm_gradient: return "norm_gradient";
    case op_kind::softmax_gradient: return "softmax_gradient";
    case op_kind::gate_gradient: return "gate_gradient";
    case op_kind::pool_gradient: return "pool_gradient";
    case op_kind::attention_gradient: return "attention_gradient";
    case op_kind::matmul_weight_gradient: return "matmul_weight_gradient";
    case op_kind::bias_gradient: return "bias_gradient";
    case op_kind::row_bias_gradient: return "row_bias_gradient";
    case op_kind::norm_parameter_gradient: return "norm_parameter_gradient";
    case op_kind::lookup_gradient: return "lookup_gradient";
    case op_kind::custom: return "custom";
    case op_kind::custom_input_gradient: return "custom_input_gradient";
    case op_kind::custom_weight_gradient: return "custom_weight_gradient";
    case op_kind::pointwise: return "pointwise";
  }
  return "?";
}

/// Passes ask this of every op, so it is one look at a word of bits and not a chain of comparisons.
template <op_kind... Kinds>
constexpr bool is_any_of(op_kind k) {
  return ((std::uint64_t(1) << int(Kinds)) | ...) >> int(k) & 1;
}

/// law: out[i] depends on element i of the operands (and on one row or column of a parameter), so
///      such an op can be
/// computed wherever its main operand, in[0], has just been computed.
constexpr bool is_pointwise(op_kind k) {
  return is_any_of<op_kind::bias, op_kind::row_bias, op_kind::map, op_kind::add, op_kind::dropout,
                   op_kind::map_gradient>(k);
}

/// A pointwise op that takes its formula, or its numbers, from its layer type.
constexpr bool is_by_leaf(op_kind k) {
  return k == op_kind::map || k == op_kind::map_gradient || k == op_kind::dropout;
}

constexpr bool is_loss(op_kind k) {
  return k == op_kind::cross_entropy || k == op_kind::squared_error || k == op_kind::element_loss;
}

constexpr bool is_custom(op_kind k) {
  return k == op_kind::custom || k == op_kind::custom_input_gradient ||
         k == op_kind::custom_weight_gradient;
}
/// An op that is no pointwise step and takes its formula from its layer type.
constexpr bool has_formula(op_kind k) {
  return k == op_kind::element_loss || k == op_kind::gate || k == op_kind::gate_gradient ||
         is_custom(k);
}

/// An op of this kind, with this flag, takes something from its layer type.
constexpr bool reads_layer(op_kind k, bool flag) {
  return has_formula(k) || (k == op_kind::cross_entropy && flag);
}

/// What a pool makes of a sample's rows. A row whose id is -1 is none.
enum class pool_kind : unsigned char { mean, first, last };

/// Where an operand lives. Values are per micro-batch; parameters and their gradients belong to the
/// stage. `random` is the number of a stream of random bits: it is read from memory, so that ops
/// that differ only in their stream share one kernel.
/// law: `operand{}` is no operand.
enum class space : unsigned char {
  none,
  value,
  input,
  label,
  parameter,
  parameter_gradient,
  parameter_transposed,
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
  int inner = 0;    // K of a contraction, H of an attention, V of a lookup
  int groups = 0;   // attention: heads of keys and values; pool: which pool_kind
  int keys = 0;  // attention: rows of keys and values, if they are another value; slice: the first
                 // column; pool: S
  // attention: causal; norm: has a mean (LayerNorm, not RMSNorm); map: derivative is a function of
  //            y; cross_entropy: its layer type
  // weighs classes, or is a formula
  bool flag = false;
  float epsilon = 0;  // norm: added to the variance; cross_entropy: factor of the squared log of
                      // the denominator
  float amount = 0;   // cross_entropy: label smoothing; custom: FLOPs
  shape form{};       // custom: of one sample of x
  int origin = 0;     // the forward op that this one is, or differentiates
};

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

struct parameter {
  int rows = 0, columns = 0;  // a vector has one row
  short unit = 0, leaf = 0;
  short tied_to = -1;  // the earlier parameter that this one is the same as, or -1
  initializer initial{};
  tensor_kind kind = tensor_kind::vector;
  bool trained = true;     // false: it has no gradient and no optimizer state
  double rate_scale = 1;   // multiplies the optimizer's learning rate
  double decay_scale = 1;  // multiplies its weight decay: 0 for biases and norms
  constexpr long elements() const { return long(rows) * columns; }
};

}  // namespace pp
