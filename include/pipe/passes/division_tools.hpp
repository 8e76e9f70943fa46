// SPDX-License-Identifier: BSL-1.0
//
// The tools of the rules of division: operands as another type, boxes of parameters, and the
// ops and values that the plane's graph gets.
#pragma once

#include <pipe/passes/division_notes.hpp>

namespace pp::detail {

/// Base of the rules: the op that is being divided, and the lists of the plane's graph.
class division_tools : protected division_notes {
 public:
  constexpr division_tools(graph_view const& g, int planes, division_scratch scratch)
      : division_notes(g, planes, scratch), parameters_(scratch.parameters) {}

 protected:
  using axis = parameter_division::axis;

  /// Begins op i: its operands as earlier ops have left them.
  constexpr void begin(int i, operand_reading how) {
    index_ = i;
    x_ = was_ = g_.ops.items[i];
    how_ = how;
    y_ = whole_value;
    has_gathered_ = false;
    for (int k = 0; k < was_.ins; ++k) {
      as_[k] = whole_value;
      if (was_.in[k].where != space::value) continue;
      value_note const& v = values_[was_.in[k].index];
      x_.in[k] = v.at;
      as_[k] = v.as;
    }
  }

  // ---- operands ----

  constexpr bool is_value(int k) const { return was_.in[k].where == space::value; }
  /// The notes of operand k. needs: is_value(k)
  constexpr value_note& value_of(int k) { return values_[was_.in[k].index]; }
  /// Whether operand k is whole because an op before could not take it divided.
  constexpr bool was_gathered(int k) {
    return is_value(k) && as_[k].is(division_type::whole) && value_of(k).was_gathered;
  }
  /// Replaces operand k by itself as another type. A replicated operand stays replicated, as
  /// no exchange makes its gradient whole; inputs have no gradient, and are whole and replicated.
  constexpr void take(int k, value_division const& to) {
    value_division const from = as_[k];
    if (from == to || from.is(division_type::replicated)) return;
    if (!is_value(k) && !to.is_divided()) return;
    if (from.is_divided() && to.is_divided()) take(k, whole_value);
    if (!is_value(k)) {
      x_.in[k] = exchanged(x_.in[k], as_[k], to, shape_of_operand(was_, k));
    } else {
      value_note& v = value_of(k);
      for (value_note::exchanged const& made : v.copies)
        if (made.unit == was_.unit && made.as == to) {
          x_.in[k] = made.at;
          as_[k] = to;
          return;
        }
      x_.in[k] = exchanged(x_.in[k], as_[k], to, shape_of_operand(was_, k));
      v.copies[v.next] = {x_.in[k], to, was_.unit};
      v.next = (v.next + 1) % value_note::kept;
    }
    as_[k] = to;
  }
  /// Gathers operand k, if it is divided.
  constexpr void gather(int k) {
    if (!as_[k].is_divided()) return;
    take(k, whole_value);
    has_gathered_ = true;
  }
  constexpr void gather_all() {
    for (int k = 0; k < was_.ins; ++k) gather(k);
  }
  /// Takes the main operand as the caller has said, if its shape allows that.
  constexpr void read_as_told() {
    operand const x = was_.in[0];
    bool const has_numbers =
        x.where == space::value || (x.where == space::input && !g_.inputs.items[x.index].is_ids);
    if (how_ == operand_reading::free || !has_numbers) return;
    operand_shape const s = shape_of_operand(was_, 0);
    if (how_ == operand_reading::whole) gather(0);
    if (how_ == operand_reading::rows && s.rows % planes_ == 0) take(0, by_rows(s));
    if (how_ == operand_reading::columns && s.columns % planes_ == 0) {
      blocks const runs = is_value(0) ? runs_of(value_of(0), s.columns) : blocks{1, s.columns};
      if (runs.divide_into(planes_)) take(0, divided_by(runs.with_count(s.rows)));
    }
  }

  // ---- divisions ----

  /// By rows, as one range.
  static constexpr value_division by_rows(operand_shape const& s) {
    return divided_by(blocks{1, int(s.elements())});
  }
  /// The division of the residual stream: by rows where planes divide the rows.
  constexpr value_division stream(operand_shape const& s) const {
    return planes_ > 1 && s.rows % planes_ == 0 ? by_rows(s) : whole_value;
  }
  /// The runs of a row of a value of `columns` columns: as its readers want them, or one.
  static constexpr blocks runs_of(value_note const& v, int columns) {
    return v.wanted.exist() && v.wanted.total() == columns ? v.wanted : blocks{1, columns};
  }
  constexpr value_note& result() { return values_[was_.out[0].index]; }
  /// The rows and columns of a plane's part of a value of shape s.
  constexpr operand_shape local(value_division const& d, operand_shape const& s) const {
    if (!d.is_divided()) return s;
    int const part = int(d.of.elements_of_part(planes_));
    if (d.columns(s.rows).exist()) return {s.rows, part / s.rows};
    if (d.rows(s.columns, planes_).exist()) return {part / s.columns, s.columns};
    return {1, part};
  }

  // ---- parameters ----

  /// Whether an op may read a box of parameter p along an axis; true for an absent parameter.
  constexpr bool may_divide(operand p, axis along) const {
    if (p.where == space::none) return true;
    parameter_note const& owner = parameters_[owner_of(p.index)];
    return !owner.stays_whole && (!owner.is_decided || owner.box.along == along);
  }
  constexpr void divide_parameter(operand p, axis along, blocks const& of) {
    if (p.where != space::none) decide(p.index, {along, of, false});
  }
  /// Leaves p whole. partial: each plane makes a part of its gradient
  constexpr void keep_parameter(operand p, bool partial) {
    if (p.where != space::none) decide(p.index, {axis::none, {}, partial});
  }

  // ---- results ----

  /// Adds the op, whose results are divided as y_. Readers see its first result divided as
  /// `settled`: a partial result is summed over the planes at once.
  constexpr void finish(value_division const& settled) {
    operand_shape const shape{was_.rows, was_.columns}, own = local(y_, shape);
    x_.rows = own.rows;
    x_.columns = own.columns;
    x_.out[0] = new_value(
        y_, y_.is_divided() ? own.elements() : g_.values.items[was_.out[0].index].elements);
    if (was_.out[1].where == space::value) add_second_result();
    push(x_);
    value_note& v = result();
    v.at = x_.out[0];
    v.as = y_;
    v.was_gathered = has_gathered_ && !v.crosses;
    settle(settled, shape);
    // What crosses copies of a Repeat is divided alike for all of them.
    if (v.crosses) settle(stream(shape), shape);
  }
  /// Adds an op of the plane's graph.
  constexpr void push(op o) {
    o.origin = out_.ops.count;
    out_.ops.push_back(out_.keeps() ? complete(o) : o);
  }
  constexpr operand new_value(value_division const& as, long elements) {
    out_.values.push_back({elements, was_.unit});
    out_.divisions.push_back(as);
    return value_operand(out_.values.count - 1);
  }
  /// Adds the exchange of a value or an input of shape s. Returns its result.
  constexpr operand exchanged(operand v, value_division const& from, value_division const& to,
                              operand_shape const& s) {
    operand_shape const before = local(from, s), after = local(to, s);
    op e{op_kind::exchange, was_.axis};
    e.unit = was_.unit;
    e.leaf = was_.leaf;
    e.ins = 1;
    e.in[0] = v;
    e.rows = after.rows;
    e.columns = after.columns;
    e.attributes = exchange_attributes{from.where, to.where, before.rows, before.columns,
                                       from.is_divided() ? from.of : to.of};
    e.out[0] = new_value(to, after.elements());
    push(e);
    return e.out[0];
  }

  parameter_note* const parameters_;
  division_sinks out_{};       // of the present walk
  bool has_conflict_ = false;  // two places of a tied parameter want different boxes
  // Of the op that is being divided:
  int index_ = 0;
  op was_{}, x_{};  // in the undivided graph, and in the plane's
  operand_reading how_ = operand_reading::free;
  value_division as_[op::max_in]{}, y_{};  // its operands and its result
  bool has_gathered_ = false;              // an operand that was divided

 private:
  constexpr int owner_of(int p) const {
    while (g_.parameters.items[p].tied_to >= 0) p = g_.parameters.items[p].tied_to;
    return p;
  }
  /// Ties share one box. Where their ops want different boxes, none is divided, and the walk begins
  /// again.
  constexpr void decide(int p, parameter_division const& box) {
    parameter_note& owner = parameters_[owner_of(p)];
    if (owner.is_decided && (owner.box.along != box.along || !(owner.box.of == box.of)))
      owner.stays_whole = has_conflict_ = true;
    if (!owner.is_decided) owner.box = box;
    owner.is_decided = true;
    parameters_[p].box = box;
  }
  /// Adds the exchange after which readers of the op's first result read it divided as `to`.
  constexpr void settle(value_division const& to, operand_shape const& s) {
    value_note& v = result();
    if (v.as == to || v.as.is(division_type::replicated)) return;
    if (v.as.is_divided() && to.is_divided()) settle(whole_value, s);
    v.at = exchanged(v.at, v.as, to, s);
    v.as = to;
  }
  /// Statistics of rows, heads or groups are divided as what they describe.
  constexpr void add_second_result() {
    long const elements = g_.values.items[was_.out[1].index].elements,
               described = g_.values.items[was_.out[0].index].elements;
    value_division as = y_;
    if (was_.kind == op_kind::group_norm && as.is_divided())
      as = divided_by(blocks{1, int(elements)});
    else if (as.is_divided())
      for (int i = 0; i < as.of.runs; ++i)
        as.of.width[i] = int(as.of.width[i] * elements / described);
    long const own = as.is_divided() ? as.of.elements_of_part(planes_) : elements;
    x_.out[1] = new_value(as, own);
    values_[was_.out[1].index].at = x_.out[1];
    values_[was_.out[1].index].as = as;
  }
};

}  // namespace pp::detail
