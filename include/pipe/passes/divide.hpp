// SPDX-License-Identifier: BSL-1.0
//
// Tensor parallelism as a pass: from a model's graph to the graph of one of several planes. Ops get
// the sizes of one plane's part, parameters a box, and exchanges make one type of another:
// all-gathers, reduce-scatters and all-reduces. Differentiation of the result makes the exchanges
// of backward.
#pragma once

#include <pipe/passes/division_rules.hpp>

namespace pp::detail {

/// One division: walks the graph once, from its inputs to its loss, without costs or choices but
/// those of the caller.
class divider : division_rules {
 public:
  constexpr divider(graph_view const& g, int planes, division_scratch scratch)
      : division_rules(g, planes, scratch), readings_(scratch.readings) {}

  /// Divides the whole graph. Where ties want different boxes, the walk begins again, with these
  /// parameters whole; only a walk without such a conflict fills memory.
  constexpr void run(division_sinks& out) {
    look_ahead();
    bool const may_conflict = any_tied(g_);
    walk(may_conflict ? division_sinks{} : out);
    while (has_conflict_) {
      forget();
      walk(division_sinks{});
    }
    if (may_conflict && out.keeps()) {
      forget();
      walk(out);
    }
    add_parameters();
    out = out_;
  }

 private:
  constexpr void walk(division_sinks const& out) {
    out_ = out;
    sizes before{};
    for (int u = 0; u < g_.units.count; ++u) {
      walk_unit(u);
      u = add_copies(u, before);
    }
    unit_record end = g_.units.items[g_.units.count];
    end.first_op = out_.ops.count;
    end.first_value = out_.values.count;
    out_.units.push_back(end);
  }
  constexpr void walk_unit(int u) {
    unit_record unit = g_.units.items[u];
    unit.first_op = out_.ops.count;
    unit.first_value = out_.values.count;
    // Backward of a Reversible would have to run its exchanges again: values are stored instead.
    if (planes_ > 1) unit.middle = -1;
    for (int i = g_.first_op(u); i < g_.first_op(u + 1); ++i)
      divide_op(i, readings_ != nullptr ? readings_[i] : operand_reading::free);
    if (unit.result.where == space::value) unit.result = values_[unit.result.index].at;
    out_.units.push_back(unit);
  }

  /// The lengths of the lists so far.
  struct sizes {
    int ops = 0, values = 0, units = 0;
  };
  constexpr sizes now() const { return {out_.ops.count, out_.values.count, out_.units.count}; }
  /// If unit u ends the third copy of a repetition, adds all later copies, which are alike: their
  /// operands from outside are, and what one copy hands to the next is divided as the stream.
  /// before: the sizes at the end of the second copy. Returns the last unit that has been added.
  constexpr int add_copies(int u, sizes& before) {
    if (readings_ != nullptr || planes_ == 1) return u;
    for (repetition const& r : g_.repetitions) {
      if (u + 1 == r.first + 2 * r.units) before = now();
      if (u + 1 == r.first + 3 * r.units && r.copies > 3) {
        int const times = r.copies - 3;
        sizes const end = now();
        int const period = end.values - before.values;
        detail::add_copies(out_.ops, end.ops - before.ops, times);
        detail::add_copies(out_.values, period, times);
        detail::add_copies(out_.divisions, period, times);
        detail::add_copies(out_.units, r.units, times);
        note_copies(r, period);
        return u + times * r.units;
      }
    }
    return u;
  }
  /// Notes the values and parameters of the copies from the fourth on.
  constexpr void note_copies(repetition const& r, int period) {
    int const first = r.first + 3 * r.units, end = r.first + r.copies * r.units;
    int const values = g_.first_value(first) - g_.first_value(first - r.units),
              parameters = g_.first_parameter(first) - g_.first_parameter(first - r.units);
    for (int v = g_.first_value(first); v < g_.first_value(end); ++v) {
      values_[v].at = values_[v - values].at;
      values_[v].at.index += period;
      values_[v].as = values_[v - values].as;
      values_[v].was_gathered = values_[v - values].was_gathered;
    }
    for (int p = g_.first_parameter(first); p < g_.first_parameter(end); ++p)
      parameters_[p] = parameters_[p - parameters];
  }
  /// Forgets a walk, but for the parameters that must stay whole.
  constexpr void forget() {
    has_conflict_ = false;
    for (int v = 0; v < g_.values.count; ++v)
      for (value_note::exchanged& made : values_[v].copies) made = {};
    for (int i = 0; i < g_.ops.count; ++i) ops_[i].by_columns = false;
    for (int p = 0; p < g_.parameters.count; ++p) {
      parameters_[p].box = {};
      parameters_[p].is_decided = false;
    }
  }
  constexpr void add_parameters() {
    for (int p = 0; out_.keeps() && p < g_.parameters.count; ++p) {
      parameter own = g_.parameters.items[p];
      parameter_division const box = parameters_[p].box;
      int const part = int(box.of.elements_of_part(planes_));
      if (box.along == axis::rows) own.form = sample_shape(part, own.columns());
      if (box.along == axis::columns) own.form = own.form.with_columns(part);
      out_.parameters[p] = own;
      out_.boxes[p] = box;
    }
  }

  operand_reading const* const readings_;
};

/// Fills `out` with the graph of one plane; if `out` has no memory, counts its ops and values.
///
/// law:   with one plane the graph comes back as it is
/// law:   in exact arithmetic, the gradients of all planes together are those of the whole graph
/// needs: planes >= 1; inputs get no gradients, as they are whole and replicated at once; `scratch`
///        in its initial state; `out` without memory, or with memory of the counted sizes
constexpr void divide(graph_view const& g, int planes, division_scratch scratch,
                      division_sinks& out) {
  divider(g, planes, scratch).run(out);
}

/// Working memory of a division of a graph of size Whole.
template <graph_size Whole>
struct division_scratch_of {
  value_note values[Whole.values + 1]{};
  op_note ops[Whole.ops + 1]{};
  parameter_note parameters[Whole.parameters + 1]{};
  constexpr operator division_scratch() { return {values, ops, parameters}; }
};
/// The size of the graph of one of `planes` planes.
template <graph_size Whole>
constexpr graph_size count_division(graph<Whole> const& g, int planes) {
  division_scratch_of<Whole> scratch;
  division_sinks counts;
  divide(g, planes, scratch, counts);
  return {counts.ops.count, counts.values.count, Whole.parameters, Whole.units, Whole.inputs};
}
/// The graph of one of `planes` planes. needs: Size is count_division(g, planes)
template <graph_size Size, graph_size Whole>
constexpr divided_graph<Size> divide(graph<Whole> const& g, int planes) {
  division_scratch_of<Whole> scratch;
  divided_graph<Size> d{};
  division_sinks sinks = d.sinks();
  divide(g, planes, scratch, sinks);
  for (int i = 0; i < Whole.inputs; ++i) d.local.inputs[i] = g.inputs[i];
  d.local.output = g.output;
  d.local.repetitions = g.repetitions;
  d.planes = planes;
  return d;
}

}  // namespace pp::detail
