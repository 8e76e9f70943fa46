// SPDX-License-Identifier: BSL-1.0
//
// Reverse-mode differentiation of a graph, one rule per kind of op. Input gradients (B) and weight
// gradients (W) are two separate lists, because a schedule may run them at different times.
#pragma once

#include <pipe/graph/gradient_ops.hpp>
#include <pipe/graph/reversal.hpp>

namespace pp::detail {

/// One differentiation: walks a graph backwards and applies the rule of each op.
class differentiator : gradient_ops, reversal<differentiator> {
 public:
  using gradient_ops::gradient_ops;

  /// Differentiates the whole graph.
  ///
  /// shape: forward ops -> out.input_ops, out.weight_ops, out.values, out.crossings
  /// cost:  one pass forward and one backward over the ops; crossings add the values that units
  ///        share
  constexpr void run() {
    mark_needed();
    for (int i = g_.ops.count - 1; i >= 0; --i) {
      // Skips the ops whose gradients have been added as copies.
      i = add_copies(i);
      if (int const unit = g_.ops.items[i].unit; g_.units.items[unit].middle >= 0)
        i = reverse(unit, i);
      else
        rule(copy_of(g_.ops.items[i]));
    }
  }

 private:
  friend class reversal<differentiator>;

  /// Adds the gradients of copies of a repetition without differentiating them. Backward meets the
  /// copies from the last to the first. If op i ends a copy, and the two copies after it, neither
  /// of which is the last, have added equally many items, this function adds the items of this copy
  /// and of all copies before it but the first, which may differ. Returns the op at which
  /// differentiation continues: i, or the last op of the first copy.
  ///
  /// A copy in between reads only its own values, values of the copy before it, and values that all
  /// copies read; so the first copy finds the gradients that copy i would have found.
  constexpr int add_copies(int i) {
    int const unit = g_.ops.items[i].unit;
    if (in_.copy_with(unit) < 0) {
      in_ = repetition{};
      for (repetition const& r : g_.repetitions)
        if (r.copy_with(unit) >= 0) in_ = r;
      copy_ = -1;
    }
    int const copy = in_.copy_with(unit);
    if (copy == copy_) return i;
    gradient_size const now = out_.sizes(), added = now - before_;
    whole_copies_ = copy_ < 0 ? 0 : whole_copies_ + 1;
    bool const repeats = whole_copies_ >= 3 && added == added_;
    copy_ = copy;
    before_ = now;
    added_ = added;
    if (!repeats || copy < 2) return i;
    out_.add_copies(added, copy);
    int const first_unit = in_.first + in_.units, last_unit = in_.first + copy * in_.units;
    int const first = g_.first_value(in_.first), end = g_.first_value(first_unit);
    int const shift = g_.first_value(last_unit) - first;
    for (int v = first; v < end; ++v) {
      gradient_[v] = gradient_[v + shift];
      if (gradient_[v].where == space::value) gradient_[v].index += copy * added.values;
      copy_remade(v, shift, copy * added.values);
    }
    if (out_.keeps()) {
      int const begin = g_.first_parameter(first_unit),
                done = g_.first_parameter(last_unit + in_.units);
      int const period = done - g_.first_parameter(last_unit);
      for (int p = done - 1; p >= begin; --p) out_.transposed[p] = out_.transposed[p + period];
    }
    return g_.first_op(in_.first + in_.units) - 1;
  }
  /// The rule of an op y = f(x, ...): adds its backward ops. The gradient dy of y is complete by
  /// then, since all readers of y come later in the graph.
  ///
  ///   loss      the loss op's own result is dx: loss and gradient are one kernel
  ///   matmul    dx = dy w^T, dw = x^T dy
  ///   convolution   dx and dw are ops of their own; of a transposed one x and dy change places
  ///   bias      dx = dy, db = sum of dy over rows; row_bias: dtable[t] = sum of dy over samples
  ///   map       dx = dy f'(x), from y instead of x where the formula allows it
  ///   prelu     dx from dy, x and the slopes; dslope = sum of dy x over rows where x <= 0
  ///   add       dx = dz = dy, without an op
  ///   multiply  dx = dy z, dz = dy x
  ///   dropout   dx = dy mask, the mask drawn again from the same stream
  ///   concat    dx and dz are slices of dy; of a parameter, the sum of its slice over rows
  ///   norm      dx from dy, x and the row's statistics; dgamma and dbeta are one weight op
  ///   batch_norm dgamma and dbeta are the sums over rows that dx needs; group_norm: as norm
  ///   softmax   dx from dy and y; gate: dx from dy and x; pool: dx from dy and the padding
  ///   resample  dx from dy and, of a maximum, x
  ///   transpose dx is the transpose of dy
  ///   row_dot   dx = dy z, dz = dy x, by row_scale; of which dx = dy s, ds = the row_dot of dy, x
  ///   attention dx from dy, x, y and the rows' log sums; the probabilities are computed again
  ///   lookup    dtable[id] = sum of dy over the rows of that id; ids have no gradient
  ///   bag       as lookup, dy divided by the number of its ids for a mean
  ///   custom    the layer's own functions
  ///   exchange  the exchange back, between the dual types
  constexpr void rule(op const& o) {
    operand const x = o.in[0];
    operand const dy = gradient_[o.out[0].index];
    switch (o.kind) {
      case op_kind::cross_entropy:
      case op_kind::squared_error:
      case op_kind::element_loss:
      case op_kind::row_loss:
      case op_kind::contrast: contribute(o, x, o.out[0]); return;
      case op_kind::matmul: matmul_rule(o, x, dy); return;
      case op_kind::convolution:
      case op_kind::convolution_input_gradient: convolution_rule(o, x, dy); return;
      case op_kind::bias:
        weight(op_kind::bias_gradient, o, {dy}, o.in[1]);
        contribute(o, x, dy);
        return;
      case op_kind::row_bias:
        weight(op_kind::row_bias_gradient, o, {dy}, o.in[1]);
        contribute(o, x, dy);
        return;
      case op_kind::map:
        if (needs(x))
          input(backward(op_kind::map_gradient, o,
                         {dy, o.attributes.map().reads_output ? o.out[0] : x}),
                x);
        return;
      case op_kind::prelu:
        weight(op_kind::prelu_parameter_gradient, o, {dy, x}, o.in[1]);
        if (needs(x)) input(backward(op_kind::prelu_gradient, o, {dy, x, o.in[1]}), x);
        return;
      case op_kind::add:
        contribute(o, x, dy);
        contribute(o, o.in[1], dy);
        return;
      case op_kind::multiply:
        if (needs(x)) input(backward(op_kind::multiply, o, {dy, o.in[1]}), x);
        if (needs(o.in[1])) input(backward(op_kind::multiply, o, {dy, x}), o.in[1]);
        return;
      case op_kind::dropout:
        if (needs(x)) input(backward(op_kind::dropout, o, {dy, o.in[1]}), x);
        return;
      case op_kind::concat: concat_rule(o, x, dy); return;
      case op_kind::slice:
        // A pair of slices is two halves of x, of which the second half's op comes first in the
        // graph. The gradients of both halves together are the gradient of x.
        if (o.attributes.slice().first == 0)
          half_ = dy;
        else if (needs(x)) {
          op d = backward(op_kind::concat, o, {half_, dy});
          d.attributes = concat_attributes{o.attributes.slice().first};
          d.columns = o.attributes.slice().columns;
          input(d, x);
        }
        return;
      case op_kind::custom: custom_rule(o, x, dy); return;
      case op_kind::norm:
        norm_rule(o, dy, op_kind::norm_parameter_gradient, op_kind::norm_gradient);
        return;
      case op_kind::group_norm:
        norm_rule(o, dy, op_kind::group_parameter_gradient, op_kind::group_norm_gradient);
        return;
      case op_kind::batch_norm: batch_norm_rule(o, x, dy); return;
      case op_kind::response_norm:
        if (needs(x)) input(backward(op_kind::response_norm_gradient, o, {dy, x}), x);
        return;
      case op_kind::softmax:
        if (needs(x)) input(backward(op_kind::softmax_gradient, o, {dy, o.out[0]}), x);
        return;
      case op_kind::gate:
        if (needs(x)) {
          op d = backward(op_kind::gate_gradient, o, {dy, x});
          d.columns = 2 * o.columns;
          input(d, x);
        }
        return;
      case op_kind::pool:
        if (needs(x)) {
          op d = backward(op_kind::pool_gradient, o, {dy, o.in[1]});
          d.rows = o.attributes.pool().rows;
          input(d, x);
        }
        return;
      case op_kind::resample:
        if (needs(x)) {
          resample_attributes const by = o.attributes.resample();
          op d = backward(op_kind::resample_gradient, o,
                          {dy, by.reduction == cell_reduction::largest ? x : operand{}});
          d.rows = by.axis[0].in * by.axis[1].in;
          input(d, x);
        }
        return;
      case op_kind::transpose:
        if (needs(x)) {
          op d = backward(op_kind::transpose, o, {dy});
          d.rows = o.columns;
          d.columns = o.rows;
          input(d, x);
        }
        return;
      case op_kind::row_dot:
        row_scale(o, o.in[1], dy, x);
        row_scale(o, x, dy, o.in[1]);
        return;
      case op_kind::row_scale:
        if (needs(x)) input(backward(op_kind::row_scale, o, {dy, o.in[1]}), x);
        if (needs(o.in[1])) {
          op d = backward(op_kind::row_dot, o, {dy, x});
          d.attributes = contraction_attributes{o.columns};
          d.columns = 1;
          input(d, o.in[1]);
        }
        return;
      case op_kind::attention: attention_rule(o, x, dy); return;
      case op_kind::exchange: exchange_rule(o, x, dy); return;
      case op_kind::lookup: weight(op_kind::lookup_gradient, o, {dy, x}, o.in[1]); return;
      case op_kind::bag: weight(op_kind::bag_gradient, o, {dy, x}, o.in[1]); return;
      case op_kind::batch_statistics:          // its gradient is part of the rule of batch_norm
      case op_kind::cross_entropy_statistics:  // of that of cross_entropy
      case op_kind::none:  // none and the gradients below are never in a forward graph
      case op_kind::matmul_input_gradient:
      case op_kind::map_gradient:
      case op_kind::prelu_gradient:
      case op_kind::norm_gradient:
      case op_kind::batch_sums:
      case op_kind::batch_norm_gradient:
      case op_kind::group_norm_gradient:
      case op_kind::response_norm_gradient:
      case op_kind::softmax_gradient:
      case op_kind::gate_gradient:
      case op_kind::pool_gradient:
      case op_kind::resample_gradient:
      case op_kind::attention_gradient:
      case op_kind::custom_input_gradient:
      case op_kind::matmul_weight_gradient:
      case op_kind::convolution_weight_gradient:
      case op_kind::bias_gradient:
      case op_kind::row_bias_gradient:
      case op_kind::prelu_parameter_gradient:
      case op_kind::norm_parameter_gradient:
      case op_kind::batch_parameter_gradient:
      case op_kind::batch_running_sums:
      case op_kind::group_parameter_gradient:
      case op_kind::lookup_gradient:
      case op_kind::bag_gradient:
      case op_kind::custom_weight_gradient:
      case op_kind::custom_statistics:
      case op_kind::pointwise: return;
    }
    op_kind_without::gradient_rule(o.kind);
  }

  /// y = x w, or y = x table' with the table of a lookup. In the second case the table and its
  /// transpose exchange roles, and so do x and dy in the weight gradient.
  constexpr void matmul_rule(op const& o, operand x, operand dy) {
    bool const is_transposed = o.in[1].where == space::parameter_transposed;
    operand const w{space::parameter, o.in[1].index},
        w_transposed{space::parameter_transposed, o.in[1].index};
    op dw =
        backward(op_kind::matmul_weight_gradient, o, is_transposed ? inputs{dy, x} : inputs{x, dy});
    int const inner = o.attributes.contraction().inner;
    if (is_transposed) {
      dw.columns = inner;
      dw.attributes = contraction_attributes{o.columns};
    }
    weight(dw, w);
    // The forward op of a table reads the parameter transposed; of any other weight, the input
    // gradient does.
    if (is_transposed || needs(x)) out_.note_transposed(w.index, transposed_by::products);
    if (!needs(x)) return;
    op d = backward(op_kind::matmul_input_gradient, o, {dy, is_transposed ? w : w_transposed});
    d.columns = inner;
    d.attributes = contraction_attributes{o.columns, !is_transposed};
    input(d, x);
  }
  /// y = conv(x, w), or a transposed convolution, whose input gradient is a convolution. The weight
  /// gradient of both reads first the image that has `channels`, then the image that has `filters`.
  constexpr void convolution_rule(op const& o, operand x, operand dy) {
    bool const is_transposed = o.kind == op_kind::convolution_input_gradient;
    convolution_attributes const of = o.attributes.convolution();
    operand const w{space::parameter, o.in[1].index};
    op dw = backward(op_kind::convolution_weight_gradient, o,
                     is_transposed ? inputs{dy, x} : inputs{x, dy});
    dw.rows = of.out_rows();
    dw.columns = of.filters;
    weight(dw, w);
    if (!of.is_depthwise() && (is_transposed || needs(x)))
      out_.note_transposed(w.index, transposed_by::convolutions);
    if (!needs(x)) return;
    operand const read{is_transposed || of.is_depthwise() ? w.where : space::parameter_transposed,
                       w.index};
    op d = backward(is_transposed ? op_kind::convolution : op_kind::convolution_input_gradient, o,
                    {dy, read});
    d.rows = is_transposed ? of.out_rows() : of.in_rows();
    d.columns = is_transposed ? of.filters : of.channels;
    input(d, x);
  }
  /// A user-defined layer: at most one weight-gradient op for all its parameters, one op for the
  /// sums of its buffers, and one input-gradient op.
  constexpr void custom_rule(op const& o, operand x, operand dy) {
    op dw = backward(op_kind::custom_weight_gradient, o, {dy, x, o.out[1]});
    read_parameters(dw, 3, o);
    bool any = false;
    for (int i = 0; i < 3; ++i) {
      if (!is_trained(o.in[1 + i])) continue;
      dw.out[i] = operand{space::parameter_gradient, o.in[1 + i].index};
      any = true;
    }
    if (any) out_.weight_ops.push_back(checked(dw));
    add_statistics(o, x);
    if (!needs(x)) return;
    op d = backward(op_kind::custom_input_gradient, o, {dy, x, o.out[1]});
    read_parameters(d, 3, o);
    d.rows = 1;
    d.columns = int(o.attributes.custom().form.elements());
    input(d, x);
  }
  /// Makes the parameters and buffers of the user-defined op o the operands of its gradient d from
  /// number `first` on. Each has a fixed place, so absent operands before the last one count.
  constexpr void read_parameters(op& d, int first, op const& o) const {
    d.ins = short(first + 3);
    for (int i = 0; i < 3; ++i) d.in[first + i] = o.in[1 + i];
  }
  /// Adds the op of the sums of buffers. They need no gradient, but must be added once per
  /// micro-batch and in order, like weight gradients, so the op is in the list of weight gradients.
  constexpr void add_statistics(op const& o, operand x) {
    op sums = backward(op_kind::custom_statistics, o, {x, o.out[1]});
    read_parameters(sums, 2, o);
    int buffers = 0;
    bool any = false;
    for (int i = 0; i < 3; ++i) {
      operand const b = o.in[1 + i];
      if (b.where != space::buffer) continue;
      if (g_.parameters.items[b.index].is_committed()) {
        // Sums are numbered by buffer: the place of a constant buffer stays empty.
        sums.out[buffers] = operand{space::buffer_sum, b.index};
        any = true;
      }
      ++buffers;
    }
    if (any) out_.weight_ops.push_back(checked(sums));
  }
  /// A norm whose statistics are its second result; gamma may be absent.
  constexpr void norm_rule(op const& o, operand dy, op_kind parameters, op_kind by_input) {
    operand const x = o.in[0], statistics = o.out[1];
    weight(parameters, o, {dy, x, statistics}, o.in[1], o.in[2]);
    if (needs(x)) input(backward(by_input, o, {dy, x, o.in[1], statistics}), x);
  }
  /// The statistics depend on all rows of a group, so dx needs two sums over rows. Sums of running
  /// statistics are added in the list of weight gradients.
  constexpr void batch_norm_rule(op const& o, operand x, operand dy) {
    operand const statistics = o.in[1], gamma = o.in[2], beta = o.in[3];
    bool const is_constant = o.attributes.batch().is_constant;
    operand sums{};
    if (is_trained(gamma) || is_trained(beta) || (needs(x) && !is_constant)) {
      op s = backward(op_kind::batch_sums, o, {dy, x, statistics});
      s.rows = 2;
      sums = s.out[0] = new_value(2L * o.columns, s.unit);
      out_.input_ops.push_back(checked(s));
      // The origin is the op of the statistics, which comes before o, so that this op runs after
      // batch_sums.
      op d = backward(op_kind::batch_parameter_gradient, o, {sums});
      d.rows = 2;
      d.attributes = batch_attributes{.samples = o.attributes.batch().samples};
      d.origin = o.origin - 1;
      weight(d, gamma, beta);
    }
    if (is_constant) sums = operand{};
    op const by_x = backward(op_kind::batch_norm_gradient, o, {dy, x, statistics, sums, gamma});
    if (needs(x)) input(by_x, x);
    op const& of_statistics = g_.ops.items[o.origin - 1];
    operand const mean = of_statistics.in[1];
    if (!g_.parameters.items[mean.index].is_committed()) return;
    op d = backward(op_kind::batch_running_sums, of_statistics, {statistics, mean});
    d.out[0] = operand{space::buffer_sum, mean.index};
    d.out[1] = operand{space::buffer_sum, of_statistics.in[2].index};
    out_.weight_ops.push_back(checked(d));
  }
  /// The gradients of the two sides of a concatenation are slices of dy. If x is a parameter, its
  /// gradient is the sum of its slice over rows, by the op of a bias gradient.
  constexpr void concat_rule(op const& o, operand x, operand dy) {
    int const left = o.attributes.concat().left;
    if (is_trained(x)) {
      op d = slice_of(o, dy, 0, left);
      d.out[0] = new_value(long(d.rows) * left, d.unit);
      out_.input_ops.push_back(checked(d));
      op sum = backward(op_kind::bias_gradient, d, {d.out[0]});
      sum.origin = o.origin - 1;  // behind the slice, which is an input op of o
      weight(sum, x);
    }
    if (needs(x)) input(slice_of(o, dy, 0, left), x);
    if (needs(o.in[1])) input(slice_of(o, dy, left, o.columns), o.in[1]);
  }
  /// The op that slices columns [first, end) of dy, which is as wide as the result of o.
  constexpr op slice_of(op const& o, operand dy, int first, int end) const {
    op d = backward(op_kind::slice, o, {dy});
    d.attributes = slice_attributes{o.columns, first};
    d.columns = end - first;
    return d;
  }
  /// Adds the gradient of x, an operand of the row_dot o: the rows of the other operand z times dy.
  constexpr void row_scale(op const& o, operand z, operand dy, operand x) {
    if (!needs(x)) return;
    op d = backward(op_kind::row_scale, o, {z, dy});
    d.columns = o.attributes.contraction().inner;
    input(d, x);
  }
  /// One op computes the gradients of both operands, or of the one that needs it.
  constexpr void attention_rule(op const& o, operand x, operand dy) {
    operand const kv = o.in[1], rotation = o.in[2];
    if (!needs(x) && !needs(kv)) return;
    attention_attributes const of = o.attributes.attention();
    bool const apart = !of.is_fused();
    op d = backward(op_kind::attention_gradient, o,
                    {dy, x, o.out[0], o.out[1], apart ? kv : rotation, o.in[3]});
    int const key_width = 2 * (o.columns / of.heads) * of.kv_heads,
              width = o.columns + (apart ? 0 : key_width);
    d.key_axis = o.key_axis;
    if (needs(x)) d.out[0] = new_value(long(o.rows) * width, d.unit);
    if (needs(kv)) d.out[1] = new_value(long(of.keys) * key_width, d.unit);
    out_.input_ops.push_back(checked(d));
    // The op is in the list; from here on d is only the geometry for sums of contributions.
    d.columns = width;
    contribute(d, x, d.out[0]);
    d.rows = of.keys, d.columns = key_width, d.axis = d.key_axis;
    contribute(d, kv, d.out[1]);
  }

  operand half_{};  // the gradient of the first of two halves
  // Of the last op:
  repetition in_{};                   // the repetition that has it
  int copy_ = -1, whole_copies_ = 0;  // its copy; the number of whole copies done
  gradient_size before_{}, added_{};  // the sizes before its copy; what the next copy added
};

/// Fills `out` with the backward ops of a graph; if `out` has no memory, counts them.
///
/// needs: the graph ends in its loss; `scratch` in its initial state; `out` without memory, or with
///        memory of the counted sizes
constexpr void differentiate(graph_view const& g, gradient_scratch scratch, gradient_sinks& out) {
  differentiator(g, scratch, out).run();
}

}  // namespace pp::detail
