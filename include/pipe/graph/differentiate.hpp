// SPDX-License-Identifier: BSL-1.0
//
// Reverse-mode differentiation of a graph, one rule per kind of op. Input gradients (B) and weight
// gradients (W) are two separate lists, because a schedule may run them at different times.
#pragma once

#include <pipe/graph/gradients.hpp>
#include <pipe/graph/reversal.hpp>

namespace pp::detail {

/// Working memory of differentiation: an item for each value of the graph.
struct gradient_scratch {
  bool* needed = nullptr;       // whether the value needs a gradient; initially false
  operand* gradient = nullptr;  // the gradient so far; initially none
  operand* remade = nullptr;    // the value as a Reversible has made it again; initially none
};

/// One differentiation: walks a graph backwards and applies the rule of each op.
class differentiator : private reversal<differentiator> {
 public:
  /// Keeps a reference to `out`; the memory of the graph and of `scratch` must outlive the object.
  constexpr differentiator(graph_view const& g, gradient_scratch scratch, gradient_sinks& out)
      : reversal(scratch.remade), g_(g), needed_(scratch.needed), gradient_(scratch.gradient),
        out_(out) {}

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

  /// If op i ends a copy of a repetition and the two copies after it, which are not the last, have
  /// added as much as each other, adds what this copy and those before it add, but for the first,
  /// which may differ. Returns the op to go on with: i, or the last of the first copy.
  ///
  /// The copies in between read no values but their own, those of the copy before them, and those
  /// that all of them read; so the first copy finds the gradients that this one would.
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
  /// A value needs a gradient if it depends on a trained parameter.
  /// Only first results are marked: statistics have no gradient.
  constexpr void mark_needed() {
    for (int i = 0; i < g_.ops.count; ++i) {
      op const o = g_.ops.items[i];
      bool needed = false;
      for (int k = 0; k < o.ins && !needed; ++k) needed = is_trained(o.in[k]) || needs(o.in[k]);
      needed_[o.out[0].index] = needed;
    }
  }
  /// Whether x is a trained parameter, as it is or transposed.
  constexpr bool is_trained(operand x) const {
    return is_parameter(x) && g_.parameters.items[x.index].trained;
  }
  /// Whether x is a value that needs a gradient. needs: mark_needed() has reached its op
  constexpr bool needs(operand x) const { return x.where == space::value && needed_[x.index]; }

  /// The rule of an op y = f(x, ...): adds its backward ops. The gradient dy of its result is
  /// complete by then, as all readers of y come later in the graph.
  ///
  ///   loss      the loss op's own result is dx: loss and gradient are one kernel
  ///   matmul    dx = dy w^T, dw = x^T dy
  ///   bias      dx = dy, db = sum of dy over rows; row_bias: dtable[t] = sum of dy over samples
  ///   map       dx = dy f'(x), from y instead of x where the formula allows it
  ///   add       dx = dz = dy, without an op
  ///   dropout   dx = dy mask, the mask drawn again from the same stream
  ///   concat    dx and dz are slices of dy
  ///   norm      dx from dy, x and the row's statistics; dgamma and dbeta are one weight op
  ///   softmax   dx from dy and y; gate: dx from dy and x; pool: dx from dy and the padding
  ///   attention dx from dy, x, y and the rows' log sums; the probabilities are computed again
  ///   lookup    dtable[id] = sum of dy over the rows of that id; ids have no gradient
  ///   custom    the layer's own functions
  constexpr void rule(op const& o) {
    operand const x = o.in[0];
    operand const dy = gradient_[o.out[0].index];
    switch (o.kind) {
      case op_kind::cross_entropy:
      case op_kind::squared_error:
      case op_kind::element_loss:
        gradient_[x.index] = o.out[0];
        cross(x, o.unit);
        return;
      case op_kind::matmul: matmul_rule(o, x, dy); return;
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
      case op_kind::add:
        contribute(o, x, dy);
        contribute(o, o.in[1], dy);
        return;
      case op_kind::dropout:
        if (needs(x)) input(backward(op_kind::dropout, o, {dy, o.in[1]}), x);
        return;
      case op_kind::concat:
        slice_rule(o, x, dy, 0, o.attributes.concat().left);
        slice_rule(o, o.in[1], dy, o.attributes.concat().left, o.columns);
        return;
      case op_kind::slice:
        // Of two halves, the second of which is the op before the first: their gradients are one.
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
        weight(op_kind::norm_parameter_gradient, o, {dy, x, o.out[1]}, o.in[1], o.in[2]);
        if (needs(x)) input(backward(op_kind::norm_gradient, o, {dy, x, o.in[1], o.out[1]}), x);
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
      case op_kind::attention: attention_rule(o, x, dy); return;
      case op_kind::lookup: weight(op_kind::lookup_gradient, o, {dy, x}, o.in[1]); return;
      case op_kind::none:  // never in a forward graph
      case op_kind::matmul_input_gradient:
      case op_kind::map_gradient:
      case op_kind::norm_gradient:
      case op_kind::softmax_gradient:
      case op_kind::gate_gradient:
      case op_kind::pool_gradient:
      case op_kind::attention_gradient:
      case op_kind::custom_input_gradient:
      case op_kind::matmul_weight_gradient:
      case op_kind::bias_gradient:
      case op_kind::row_bias_gradient:
      case op_kind::norm_parameter_gradient:
      case op_kind::lookup_gradient:
      case op_kind::custom_weight_gradient:
      case op_kind::custom_statistics:
      case op_kind::pointwise: return;
    }
    op_kind_without::gradient_rule(o.kind);
  }

  /// y = x w, or y = x table' where the table is shared with a lookup. In the second case the table
  /// and its transpose exchange their roles, and so do x and dy in the weight gradient.
  constexpr void matmul_rule(op const& o, operand x, operand dy) {
    bool const turned = o.in[1].where == space::parameter_transposed;
    operand const w{space::parameter, o.in[1].index},
        w_turned{space::parameter_transposed, o.in[1].index};
    op dw = backward(op_kind::matmul_weight_gradient, o, turned ? inputs{dy, x} : inputs{x, dy});
    int const inner = o.attributes.contraction().inner;
    if (turned) {
      dw.columns = inner;
      dw.attributes = contraction_attributes{o.columns};
    }
    weight(dw, w);
    // Read transposed by the forward op of a table, or by the input gradient of any other weight.
    if (out_.keeps()) out_.transposed[w.index] = out_.transposed[w.index] || turned || needs(x);
    if (!needs(x)) return;
    op d = backward(op_kind::matmul_input_gradient, o, {dy, turned ? w : w_turned});
    d.columns = inner;
    d.attributes = contraction_attributes{o.columns, !turned};
    input(d, x);
  }
  /// A user-defined layer: at most one weight-gradient op for all its parameters, one op for the
  /// sums of its buffers, and one input-gradient op.
  constexpr void custom_rule(op const& o, operand x, operand dy) {
    op dw = backward(op_kind::custom_weight_gradient, o, {dy, x, o.out[1]});
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
    // Each parameter has its own place, so absent ones before the last count as operands.
    d.ins = op::max_in;
    for (int i = 0; i < 3; ++i) d.in[3 + i] = o.in[1 + i];
    d.rows = 1;
    d.columns = int(o.attributes.custom().form.elements());
    input(d, x);
  }
  /// The sums of buffers need no gradient, but must be added once per micro-batch and in order,
  /// like weight gradients; so they are in that list.
  constexpr void add_statistics(op const& o, operand x) {
    op sums = backward(op_kind::custom_statistics, o, {x, o.out[1]});
    int buffers = 0;
    bool any = false;
    for (int i = 0; i < 3; ++i) {
      operand const b = o.in[1 + i];
      if (b.where != space::buffer) continue;
      if (g_.parameters.items[b.index].is_committed()) {
        // Sums are numbered by buffer: a constant one leaves its place empty.
        sums.out[buffers] = operand{space::buffer_sum, b.index};
        any = true;
      }
      ++buffers;
    }
    if (any) out_.weight_ops.push_back(checked(sums));
  }
  /// The gradient of one side of a concatenation: columns [first, end) of dy.
  constexpr void slice_rule(op const& o, operand x, operand dy, int first, int end) {
    if (!needs(x)) return;
    op d = backward(op_kind::slice, o, {dy});
    d.attributes = slice_attributes{o.columns, first};
    d.columns = end - first;
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
    if (needs(x)) d.out[0] = new_value(long(o.rows) * width, d.unit);
    if (needs(kv)) d.out[1] = new_value(long(of.keys) * key_width, d.unit);
    out_.input_ops.push_back(checked(d));
    // The op is in the list; from here on d only gives sums of contributions their geometry.
    d.columns = width;
    contribute(d, x, d.out[0]);
    d.rows = of.keys;
    d.columns = key_width;
    contribute(d, kv, d.out[1]);
  }

  /// The operands of a backward op. The count is up to the last that is there, absent ones before
  /// it included.
  struct inputs {
    operand a{}, b{}, c{}, d{}, e{}, f{};
    constexpr short count() const {
      constexpr auto none = space::none;
      if (f.where != none) return 6;
      if (e.where != none) return 5;
      if (d.where != none) return 4;
      if (c.where != none) return 3;
      return b.where != none ? 2 : 1;
    }
  };
  /// An op with the geometry of o on these operands, without results, and with o's attributes if
  /// its kind has the same kind of them. When only counting, only its unit is set.
  constexpr op backward(op_kind kind, op const& o, inputs in) const {
    op d{};
    d.unit = o.unit;
    if (out_.keeps()) {
      d.kind = kind;
      d.leaf = o.leaf;
      d.ins = in.count();
      d.in[0] = in.a;
      d.in[1] = in.b;
      d.in[2] = in.c;
      d.in[3] = in.d;
      d.in[4] = in.e;
      d.in[5] = in.f;
      read_remade(d, g_.values.count);
      d.rows = o.rows;
      d.columns = o.columns;
      d.origin = o.origin;
      if (attributes_of(kind) == o.attributes.kind()) d.attributes = o.attributes;
    }
    return d;
  }
  /// Checks that d has the attributes of its kind: see complete(). A counting run sets none.
  constexpr op const& checked(op const& d) const { return out_.keeps() ? complete(d) : d; }
  /// Adds a weight-gradient op for its one or two parameters, unless none of them is trained.
  constexpr void weight(op_kind kind, op const& o, inputs const& in, operand p,
                        operand second = operand{}) {
    weight(backward(kind, o, in), p, second);
  }
  constexpr void weight(op d, operand p, operand second = operand{}) {
    if (!is_trained(p) && !is_trained(second)) return;
    if (is_trained(p)) d.out[0] = operand{space::parameter_gradient, p.index};
    if (is_trained(second)) d.out[1] = operand{space::parameter_gradient, second.index};
    out_.weight_ops.push_back(checked(d));
  }
  /// Adds the input-gradient op d, whose result contributes to the gradient of x.
  constexpr void input(op d, operand x) {
    d.out[0] = new_value(long(d.rows) * d.columns, d.unit);
    out_.input_ops.push_back(checked(d));
    contribute(d, x, d.out[0]);
  }
  /// Adds d to the gradient of x, which is the sum over its readers. The newest term is the first
  /// operand of the sum, so that the sum fuses into the kernel that makes it.
  constexpr void contribute(op const& o, operand x, operand d) {
    if (!needs(x)) return;
    operand& total = gradient_[x.index];
    if (total.where == space::none) {
      total = d;
      return cross(x, o.unit);
    }
    op sum = backward(op_kind::add, o, {d, total});
    sum.out[0] = new_value(long(o.rows) * o.columns, o.unit);
    out_.input_ops.push_back(sum);
    total = sum.out[0];
    cross(x, o.unit);
  }
  /// Records that the gradient of x has changed in unit `reader`.
  /// A value read in its own unit crosses no cut.
  constexpr void cross(operand x, short reader) {
    if (g_.values.items[x.index].unit == reader) return;
    out_.crossings.push_back(crossing{x.index, reader, gradient_[x.index]});
  }
  /// A new value, numbered after those of the forward graph.
  constexpr operand new_value(long elements, short unit) {
    out_.values.push_back(value{elements, unit});
    return value_operand(g_.values.count + out_.values.count - 1);
  }

  graph_view const g_;
  bool* const needed_;
  operand* const gradient_;
  operand half_{};  // the gradient of the first of two halves
  gradient_sinks& out_;
  // Of the last op:
  repetition in_{};                   // its repetition
  int copy_ = -1, whole_copies_ = 0;  // its copy, and how many copies after it are done
  gradient_size before_{}, added_{};  // the sizes before its copy, and what the one after it added
};

/// Fills `out` with the backward ops of a graph, or counts them.
///
/// needs: the graph ends in its loss; `scratch` in its initial state; `out` without memory, or with
///        memory of the counted sizes
constexpr void differentiate(graph_view const& g, gradient_scratch scratch, gradient_sinks& out) {
  differentiator(g, scratch, out).run();
}

/// Working memory of constant size.
template <graph_size Forward>
struct gradient_scratch_of {
  bool needed[Forward.values + 1]{};
  operand gradient[Forward.values + 1]{}, remade[Forward.values + 1]{};
  constexpr operator gradient_scratch() { return gradient_scratch{needed, gradient, remade}; }
};
/// The sizes of a graph's gradients.
template <graph_size Forward>
constexpr gradient_size count_gradients(graph<Forward> const& g) {
  gradient_scratch_of<Forward> scratch;
  gradient_sinks counts;
  differentiate(g, scratch, counts);
  return counts.sizes();
}
/// The gradients of a graph. needs: Size is count_gradients(g)
template <gradient_size Size, graph_size Forward>
constexpr gradient_graph<Size, Forward.parameters> differentiate(graph<Forward> const& g) {
  gradient_scratch_of<Forward> scratch;
  gradient_graph<Size, Forward.parameters> out;
  gradient_sinks sinks = out.sinks();
  differentiate(g, scratch, sinks);
  return out;
}

}  // namespace pp::detail
