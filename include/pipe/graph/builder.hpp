// SPDX-License-Identifier: BSL-1.0
//
// What a layer sees while it describes itself: the current value and its shape, and one function per kind of op. After
// the first fault every function does nothing, so one mistake makes one message.
#pragma once

#include <pipe/graph/diagnostics.hpp>
#include <pipe/graph/graph.hpp>
#include <pipe/graph/layers.hpp>

namespace pp {

/// The current value: where it is, how one sample of it looks, and whether it is made of token ids.
struct handle {
  operand at{};
  shape form{};
  bool is_ids = false;
};

/// Runs layer descriptions. With no room it only counts and checks; with exactly the counted room it keeps what they add.
template <class Leaves, graph_size Room = graph_size{}>
class builder {
 public:
  static constexpr bool keeps = Room.units > 0;

  constexpr builder(handle input, int vocabulary) : current_(input), vocabulary_(vocabulary) {}

  /// What the next layer reads, and how a layer says what it made.
  constexpr handle current() const { return current_; }
  constexpr void set(handle h) { current_ = h; }
  constexpr bool ok() const { return fault_.ok(); }
  constexpr int vocabulary() const { return vocabulary_; }

  /// Describes layer L here. At top level a layer that is not opened begins a new unit, a place where the model may be cut.
  template <class L>
  constexpr void layer() {
    if constexpr (opened<L>) {
      if (L::times < 1) complain(fault_kind::size_not_positive, leaf_index<L>(Leaves{}), shape{}, shape(L::times));
      for (int i = 0; i < L::times && ok(); ++i) all(typename L::parts{});
    } else {
      if (!ok()) return;
      if (depth_ == 0) begin_unit(leaf_index<L>(Leaves{}));
      int const outer = leaf_;
      leaf_ = leaf_index<L>(Leaves{});
      ++depth_;
      if constexpr (requires(builder& b) { L::describe(b); })
        L::describe(*this);
      else
        complain(fault_kind::not_a_layer, shape{}, shape{});
      --depth_;
      leaf_ = outer;
      if (depth_ == 0) end_unit();
    }
  }
  template <class... L>
  constexpr void all(layers<L...>) {
    (layer<L>(), ...);
  }

  /// Describes the loss: it stays in the unit of the layer before it, since no cut may part the two.
  template <class L>
  constexpr void close() {
    if (!ok()) return;
    leaf_ = leaf_index<L>(Leaves{});
    L::describe(*this);
  }

  /// Records the first fault, at the present layer.
  constexpr void complain(fault_kind what, shape expected, shape found) { complain(what, leaf_, expected, found); }

  /// True, or a fault: the current value must be real numbers, or token ids.
  constexpr bool needs_numbers() {
    if (ok() && current_.is_ids) complain(fault_kind::needs_real_numbers, shape{}, current_.form);
    return ok();
  }
  constexpr bool needs_ids() {
    if (ok() && !current_.is_ids) complain(fault_kind::needs_token_ids, shape{}, current_.form);
    return ok();
  }
  constexpr bool needs_positive(int n) {
    if (ok() && n < 1) complain(fault_kind::size_not_positive, shape{}, shape(n));
    return ok();
  }
  constexpr bool needs_ratio(bool in_range, int numerator, int denominator) {
    if (ok() && !in_range) complain(fault_kind::ratio_out_of_range, shape{}, shape(numerator, denominator));
    return ok();
  }

  /// A parameter of rows x columns (a vector has one row).
  constexpr operand parameter(int rows, int columns, initializer initial, bool decays) {
    if constexpr (keeps)
      graph_.parameters[sizes_.parameters] = pp::parameter{rows, columns, unit_, short(leaf_), initial, decays, false};
    return operand{space::parameter, sizes_.parameters++};
  }

  /// ids[R] and table[V, C] -> [R, C]
  constexpr handle lookup(handle ids, operand table, int vocabulary, int width) {
    shape form = ids.form;
    form.extent[form.rank++] = width;
    return push(op_kind::lookup, form, {ids.at, table}, {.inner = vocabulary});
  }
  /// x[R, K] and w[K, N] -> [R, N]
  constexpr handle matmul(handle x, operand w, int columns) {
    return push(op_kind::matmul, x.form.with_columns(columns), {x.at, w}, {.inner = x.form.columns()});
  }
  constexpr handle bias(handle x, operand b) { return push(op_kind::bias, x.form, {x.at, b}); }
  constexpr handle row_bias(handle x, operand table) { return push(op_kind::row_bias, x.form, {x.at, table}); }
  /// The formula of the layer being described, element by element. `reads_output`: see concept formula.
  constexpr handle map(handle x, bool reads_output) {
    return push(op_kind::map, x.form, {x.at}, {.flag = reads_output});
  }
  constexpr handle add(handle x, handle z) { return push(op_kind::add, x.form, {x.at, z.at}); }
  /// Normalises each row; beta may be absent. `has_mean`: LayerNorm, else RMSNorm.
  constexpr handle norm(handle x, operand gamma, operand beta, bool has_mean, float epsilon) {
    handle const y = push(op_kind::norm, x.form, {x.at, gamma, beta}, {.flag = has_mean, .epsilon = epsilon});
    second_output(2L * x.form.rows());
    return y;
  }
  /// Softmax along each row.
  constexpr handle softmax(handle x) { return push(op_kind::softmax, x.form, {x.at}); }
  /// x[R, 2C] -> [R, C] by the formula of the layer being described; see gated.
  constexpr handle gate(handle x) { return push(op_kind::gate, x.form.with_columns(x.form.columns() / 2), {x.at}); }
  /// qkv[R, 3C] -> [R, C] with `heads` heads.
  constexpr handle attention(handle qkv, int heads, bool causal) {
    handle const y = push(op_kind::attention, qkv.form.with_columns(qkv.form.columns() / 3), {qkv.at},
                          {.inner = heads, .flag = causal});
    second_output(long(heads) * qkv.form.rows());
    return y;
  }
  /// A loss ends the model: its output is its own gradient with respect to x. `smoothing` and `z` are cross_entropy's.
  constexpr void loss(op_kind kind, handle x, float smoothing = 0, float z = 0) {
    push(kind, x.form, {x.at, operand{space::label, 0}}, {.epsilon = z, .amount = smoothing});
  }

  constexpr model_fault const& fault() const { return fault_; }
  constexpr graph_size sizes() const { return sizes_; }
  constexpr int open_units() const { return sizes_.units; }

  /// The finished graph.
  constexpr graph<Room> finish(handle input) {
    graph_.units[Room.units] = unit_record{Room.ops, Room.values, Room.parameters, -1, operand{}, shape{}};
    graph_.input = input.form;
    graph_.input_is_ids = input.is_ids;
    graph_.output = current_.form;
    return graph_;
  }

  constexpr void complain(fault_kind what, int leaf, shape expected, shape found) {
    if (ok()) fault_ = model_fault{what, position_, leaf, expected, found};
  }

 private:
  constexpr void begin_unit(int leaf) {
    ++unit_;
    if constexpr (keeps)
      graph_.units[unit_] = unit_record{sizes_.ops, sizes_.values, sizes_.parameters, short(leaf), operand{}, shape{}};
    first_op_ = sizes_.ops;
    ++sizes_.units;
  }
  /// A layer without ops (Flatten) is no place to cut: it becomes part of the next unit.
  constexpr void end_unit() {
    if (sizes_.ops == first_op_) {
      --unit_;
      --sizes_.units;
      return;
    }
    ++position_;
    if constexpr (keeps) {
      graph_.units[unit_].result = current_.at;
      graph_.units[unit_].out = current_.form;
    }
  }
  /// What an op has beside its kind, its shape and its operands; see op.
  struct details {
    int inner = 0, groups = 0, keys = 0;
    bool flag = false;
    float epsilon = 0, amount = 0;
  };
  struct inputs {
    operand a{}, b{}, c{}, d{};
  };
  constexpr handle push(op_kind kind, shape form, inputs in, details const& with = details{}) {
    operand const out = new_value(form.elements());
    if constexpr (keeps) {
      op o{};
      o.kind = kind;
      o.unit = unit_;
      o.leaf = short(leaf_);
      o.in[0] = in.a;
      o.in[1] = in.b;
      o.in[2] = in.c;
      o.in[3] = in.d;
      o.out[0] = out;
      o.rows = form.rows();
      o.columns = form.columns();
      o.inner = with.inner;
      o.groups = with.groups;
      o.keys = with.keys;
      o.flag = with.flag;
      o.epsilon = with.epsilon;
      o.amount = with.amount;
      o.origin = sizes_.ops;
      graph_.ops[sizes_.ops] = o;
    }
    ++sizes_.ops;
    return handle{out, form, false};
  }
  constexpr void second_output(long elements) {
    operand const out = new_value(elements);
    if constexpr (keeps) graph_.ops[sizes_.ops - 1].out[1] = out;
  }
  constexpr operand new_value(long elements) {
    if constexpr (keeps) graph_.values[sizes_.values] = value{elements, unit_};
    return value_operand(sizes_.values++);
  }

  handle current_;
  int vocabulary_;
  model_fault fault_{};
  graph_size sizes_{};
  short unit_ = -1;
  int leaf_ = -1, depth_ = 0, position_ = 0, first_op_ = 0;
  graph<Room> graph_{};
};

}  // namespace pp
