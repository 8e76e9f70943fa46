// SPDX-License-Identifier: BSL-1.0
//
// The kinds of ops, with the shapes of their operands and results. The set is closed: each kind has
// a row in graph/op_traits.hpp, a gradient rule, a cost, a kernel on each backend and a workspace,
// and a program does not compile if a kind lacks one of these.
#pragma once

#include <cstdlib>

namespace pp {

/// The kinds of ops. "-" is an absent operand, and "?" marks an optional one.
enum class op_kind : unsigned char {
  none,
  // forward
  lookup,  // ids[R], table[V, C]            -> y[R, C]
  bag,     // ids[R, I], table[V, C]         -> y[R, C]     sums or means of I rows of the table
  matmul,  // x[R, K], w[K, N]               -> y[R, N]
  // x[H, W, C], w[kh, kw, C / G, N] -> y[Y, X, N]: see convolution_attributes
  convolution,
  bias,      // x[R, C], b[C]                  -> y          pointwise
  row_bias,  // x[R, C], t[R, C]               -> y          pointwise: one row of t per position
  map,       // x                              -> y          pointwise: a formula
  prelu,     // x[R, C], slope[C] or [1]       -> y          pointwise: x above 0, else slope x
  add,       // x, z                           -> y          pointwise
  multiply,  // x, z                           -> y          pointwise; its own gradients
  // x, stream -> y, pointwise. The gradient is the same op: dy, stream -> dx
  dropout,
  concat,  // x[R, K], or a parameter [K], z[R, C - K] -> y[R, C]
  norm,    // x[R, C], gamma[C], beta[C]?    -> y, statistics[R, 2]
  // x[R, C], running mean[C], variance[C] -> statistics[3, C] of the micro-batch
  batch_statistics,
  batch_norm,     // x[R, C], statistics, gamma[C]?, beta[C]? -> y
  group_norm,     // x[R, C], gamma[C]?, beta[C]? -> y, statistics[G, 2]
  response_norm,  // x[R, C]                  -> y          across columns
  softmax,        // x[R, C]                        -> y          along each row
  gate,       // x[R, 2C]                       -> y[R, C]    a formula of one half times the other
  pool,       // x[S, C], ids[S]?               -> y[1, C]    the mean of rows, or one of them
  resample,   // x[R, C]                       -> y[S, C]    pools, upsampling, padding of an image
  transpose,  // x[C, R]                      -> y[R, C]    of each sample; its own gradient
  // x[R, C], z[R, C] -> y[R, 1]: the sums of x z along the rows
  row_dot,
  row_scale,  // x[R, C], s[R, 1]             -> y[R, C]    rows times numbers
  // qkv[R, C + 2K], -, table?, ids? -> y[R, C], lse[R, H]; or q[R, C], kv[S, 2K], -, ids?
  attention,
  // losses: further targets are in[2] to in[4], weights[R] in[5]; the result is the gradient of the
  // loss, and the loss is added to the loss of the step
  cross_entropy,  // logits[R, V], labels[R]        -> dlogits
  squared_error,  // x[R, C], target[R, C]          -> dx
  element_loss,   // x[R, C], target[R, C]          -> dx         a formula
  row_loss,       // x[R, C], target[R, D]?         -> dx         a formula of a row
  contrast,       // x[R, 2C], -, x                 -> dx         of all rows of a micro-batch
  custom,         // x, p0?, p1?, p2?               -> y, saved?
  // of graphs of one plane (passes/divide.hpp), which no backend runs yet
  exchange,  // x -> y: a value as another type of division; its gradient is an exchange, too
  // logits[R, V / T], labels[R] -> sums[R, 4]: see cross_entropy_attributes
  cross_entropy_statistics,
  // backward, input gradients
  matmul_input_gradient,  // dy[R, N], w            -> dx[R, K]
  // dy[Y, X, N], w -> dx[H, W, C]; in a forward graph, a transposed convolution
  convolution_input_gradient,
  map_gradient,            // dy, x or y             -> dx         pointwise
  prelu_gradient,          // dy, x, slope           -> dx         pointwise
  slice,                   // dy[R, K] -> dx[R, C]: columns from `first` on
  norm_gradient,           // dy, x, gamma, statistics -> dx
  batch_sums,              // dy, x, statistics        -> sums[2, C] of the micro-batch: dy xhat, dy
  batch_norm_gradient,     // dy, x, statistics, sums?, gamma? -> dx
  group_norm_gradient,     // dy, x, gamma?, statistics -> dx
  response_norm_gradient,  // dy, x                 -> dx
  softmax_gradient,        // dy, y                  -> dx
  gate_gradient,           // dy[R, C / 2], x[R, C]  -> dx[R, C]
  pool_gradient,           // dy[1, C], ids[S]?      -> dx[S, C]
  resample_gradient,       // dy[S, C], x[R, C]?     -> dx[R, C]
  // dy, qkv, y, lse, table?, ids? -> dqkv; or dy, q, y, lse, kv, ids? -> dq?, dkv?
  attention_gradient,
  custom_input_gradient,  // dy, x, saved?, p0?, p1?, p2? -> dx
  // backward, weight gradients
  matmul_weight_gradient,       // x[R, K], dy[R, N]    -> dw[K, N]
  convolution_weight_gradient,  // x[H, W, C], dy[Y, X, N] -> dw[kh, kw, C / G, N]
  bias_gradient,                // dy[R, C]             -> db[C]
  row_bias_gradient,            // dy[R, C]             -> dt[R, C]
  prelu_parameter_gradient,     // dy[R, C], x[R, C]    -> dslope[C] or [1]
  norm_parameter_gradient,      // dy, x, statistics    -> dgamma, dbeta?
  batch_parameter_gradient,     // sums[2, C]          -> dgamma?, dbeta?
  batch_running_sums,           // statistics, running mean -> sums of two buffers
  group_parameter_gradient,     // dy, x, statistics   -> dgamma?, dbeta?
  lookup_gradient,              // dy[R, C], ids[R]     -> dtable[V, C]
  bag_gradient,                 // dy[R, C], ids[R, I]  -> dtable[V, C]
  custom_weight_gradient,       // dy, x, saved?, p0, p1?, p2? -> dp0, dp1?, dp2?
  custom_statistics,            // x, saved?, p0, p1?, p2? -> sums of buffers
  // not an op: the anchor of a kernel group that is a chain of pointwise ops alone
  pointwise,
};

namespace detail {

/// The number of kinds, `none` and `pointwise` among them.
inline constexpr int op_kinds = int(op_kind::pointwise) + 1;

/// A set of kinds: bit k is kind k.
__extension__ typedef unsigned __int128 kind_mask;
static_assert(op_kinds <= 128, "a mask has a bit for each kind of op");

}  // namespace detail

/// Compile errors for a kind that lacks one of its parts: these functions are not constexpr, so a
/// constant evaluation that needs the part stops at their name. A missing kernel is an incomplete
/// type (backend/dispatch.hpp).
namespace op_kind_without {
[[noreturn]] inline void traits(op_kind) { std::abort(); }
[[noreturn]] inline void attributes(op_kind) { std::abort(); }
[[noreturn]] inline void gradient_rule(op_kind) { std::abort(); }
[[noreturn]] inline void cost(op_kind) { std::abort(); }
[[noreturn]] inline void operand_shape(op_kind) { std::abort(); }
[[noreturn]] inline void division_rule(op_kind) { std::abort(); }
}  // namespace op_kind_without

}  // namespace pp
