// SPDX-License-Identifier: BSL-1.0
//
// The tools of the rules of differentiation: which values need a gradient, ops of the two
// lists, and sums of contributions.
#pragma once

#include <pipe/graph/gradients.hpp>

namespace pp::detail {

/// Working memory of differentiation: an item for each value of the graph.
/// inputs: whether inputs get gradients too
struct gradient_scratch {
  bool* needed = nullptr;       // whether the value needs a gradient; initially false
  operand* gradient = nullptr;  // the gradient so far; initially none
  operand* remade = nullptr;    // the value as a Reversible has remade it; initially none
  bool inputs = false;
};

/// The lists of a graph's backward ops under construction, and the functions that add to them.
class gradient_ops {
 public:
  /// Keeps a reference to `out`; the memory of the graph and of `scratch` must outlive the object.
  constexpr gradient_ops(graph_view const& g, gradient_scratch scratch, gradient_sinks& out)
      : g_(g), needed_(scratch.needed), gradient_(scratch.gradient), remade_(scratch.remade),
        inputs_(scratch.inputs), out_(out) {}

 protected:
  using inputs = gradient_operands;

  /// A value needs a gradient if it depends on a trained parameter, or on an input that needs one.
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
  /// Whether x is a value or an input that needs a gradient. needs: mark_needed() has reached its
  /// op
  constexpr bool needs(operand x) const {
    if (x.where == space::value) return needed_[x.index];
    return inputs_ && x.where == space::input && has_gradient(g_.inputs.items[x.index]);
  }

  /// An op of a kind on the operands `in`, with the geometry of o, without results, and with o's
  /// attributes if ops of `kind` have attributes of the same kind. A counting run sets the unit
  /// only.
  constexpr op backward(op_kind kind, op const& o, inputs in) const {
    op d{};
    d.unit = o.unit;
    if (out_.keeps()) {
      d.kind = kind;
      d.axis = o.axis;
      d.leaf = o.leaf;
      d.ins = in.count();
      d.in[0] = in.a;
      d.in[1] = in.b;
      d.in[2] = in.c;
      d.in[3] = in.d;
      d.in[4] = in.e;
      d.in[5] = in.f;
      read_remade(d);
      d.rows = o.rows;
      d.columns = o.columns;
      d.origin = o.origin;
      if (attributes_of(kind) == o.attributes.kind()) d.attributes = o.attributes;
    }
    return d;
  }
  /// Replaces each input of d by the remade value, where there is one.
  constexpr void read_remade(op& d) const {
    for (int k = 0; remakes_ && k < d.ins; ++k) {
      operand& x = d.in[k];
      if (x.where == space::value && x.index < g_.values.count &&
          remade_[x.index].where == space::value)
        x = remade_[x.index];
    }
  }
  /// Sets the remade value of v, which is in an earlier copy of a Repeat, from the remade value of
  /// v + shift in a later copy, whose index is `distance` less.
  constexpr void copy_remade(int v, int shift, int distance) {
    if (!remakes_) return;
    remade_[v] = remade_[v + shift];
    if (remade_[v].where == space::value) remade_[v].index += distance;
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
  /// The gradient of an exchange goes back between the dual types. Statistics of a loss are
  /// exchanged, too, and have no gradient.
  constexpr void exchange_rule(op const& o, operand x, operand dy) {
    if (!needs(x) || dy.where == space::none) return;
    exchange_attributes const of = o.attributes.exchange();
    op d = backward(op_kind::exchange, o, {dy});
    d.attributes = of.of_gradient(o.rows, o.columns);
    d.rows = of.rows;
    d.columns = of.columns;
    input(d, x);
  }
  /// Adds d to the gradient of x, which is the sum over the readers of x. The newest term is the
  /// first operand of the sum, so that the sum fuses into the kernel that makes this term.
  constexpr void contribute(op const& o, operand x, operand d) {
    if (!needs(x)) return;
    operand& total = gradient_of(x);
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
  /// The gradient so far of a value or an input.
  constexpr operand& gradient_of(operand x) {
    return x.where == space::input ? input_gradient_[x.index] : gradient_[x.index];
  }
  /// Records that the gradient of x has changed in unit `reader`. A value that is read in its own
  /// unit crosses no cut, and is not recorded.
  constexpr void cross(operand x, short reader) {
    bool const is_input = x.where == space::input;
    if (!is_input && g_.values.items[x.index].unit == reader) return;
    out_.crossings.push_back(
        crossing{is_input ? crossing_of_input(x.index) : x.index, reader, gradient_of(x)});
  }
  /// A new value, numbered after the values of the forward graph.
  constexpr operand new_value(long elements, short unit) {
    out_.values.push_back(value{elements, unit});
    return value_operand(g_.values.count + out_.values.count - 1);
  }

  graph_view const g_;
  bool* const needed_;
  operand* const gradient_;
  operand* const remade_;
  operand input_gradient_[max_inputs]{};
  bool const inputs_;
  bool remakes_ = false;  // whether there has been a reversible block
  gradient_sinks& out_;
};

}  // namespace pp::detail
