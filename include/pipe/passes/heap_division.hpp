// SPDX-License-Identifier: BSL-1.0
//
// The graph of one plane, made at run time.
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <pipe/base/heap_array.hpp>
#include <pipe/passes/divide.hpp>

namespace pp::detail {

/// A graph divided at run time: its lists on the heap. The undivided graph must outlive the object.
///
/// law: the lists are those of `divide` as a constant
class heap_division {
 public:
  /// Divides twice: first to count, then into arrays of the counted lengths.
  /// readings: by op, or null; see operand_reading. needs: planes >= 1
  heap_division(graph_view const& g, int planes, operand_reading const* readings = nullptr) {
    division_sinks counts;
    fill(g, planes, readings, counts);
    ops_ = heap_array<op>(counts.ops.count);
    values_ = heap_array<value>(counts.values.count);
    divisions_ = heap_array<value_division>(counts.values.count);
    units_ = heap_array<unit_record>(counts.units.count);
    parameters_ = heap_array<parameter>(g.parameters.count + 1);
    boxes_ = heap_array<parameter_division>(g.parameters.count + 1);
    division_sinks sinks{{ops_.begin()},   {values_.begin()},   {divisions_.begin()},
                         {units_.begin()}, parameters_.begin(), boxes_.begin()};
    fill(g, planes, readings, sinks);
    view_.local = {sinks.ops.filled(),
                   sinks.values.filled(),
                   {parameters_.begin(), g.parameters.count},
                   {units_.begin(), g.units.count},
                   g.inputs,
                   g.output,
                   g.repetitions};
    view_.values = sinks.divisions.filled();
    view_.parameters = {boxes_.begin(), g.parameters.count};
    view_.planes = planes;
  }
  operator division_view() const { return view_; }

 private:
  /// One division, with working memory of its own.
  static void fill(graph_view const& g, int planes, operand_reading const* readings,
                   division_sinks& out) {
    heap_array<value_note> values(g.values.count);
    heap_array<op_note> ops(g.ops.count);
    heap_array<parameter_note> parameters(g.parameters.count);
    divide(g, planes, {values.begin(), ops.begin(), parameters.begin(), readings}, out);
  }
  heap_array<op> ops_;
  heap_array<value> values_;
  heap_array<value_division> divisions_;
  heap_array<unit_record> units_;
  heap_array<parameter> parameters_;
  heap_array<parameter_division> boxes_;
  division_view view_;
};

}  // namespace pp::detail
