// SPDX-License-Identifier: BSL-1.0
//
// A compiled model, stage by stage: the ranges of the model's lists that belong to a stage, and the
// addresses of values of other stages.
#pragma once

#include <pipe/graph/further_loss.hpp>
#include <pipe/passes/address.hpp>
#include <pipe/passes/boundary.hpp>
#include <pipe/passes/kernel_groups.hpp>

namespace pp::detail {

/// The ranges of one stage in the model's lists.
struct stage_range {
  /// `gradients`: numbers in value_table, where gradients follow all forward values.
  range units, values, gradients, parameters;
  per_op_list<range> segments;

  /// The number of values that the stage makes, gradients included.
  constexpr int local_values() const { return values.size() + gradients.size(); }
  /// The index of value v among the values that the stage makes, or -1 if another stage makes it.
  ///
  /// law: forward values first, then gradients: [0, local_values())
  constexpr int local(int v) const {
    if (v < values.end) return v < values.begin ? -1 : v - values.begin;
    return v < gradients.begin || v >= gradients.end ? -1 : v - gradients.begin + values.size();
  }
};

/// The results of the passes over a whole model, which the passes over its stages read. The model's
/// ops are not in it: EDG's compilers (nvcc's, too) copy all that a constant points to, directly or
/// not, for each constant expression that names the constant, and three times if a local reference
/// is bound to the constant.
struct compiled_model {
  view<parameter> parameters;
  copy_layout const* transposed = nullptr;  // by parameter
  int loss = 0, logits = 0;                 // the values that the loss makes and reads
  int stages = 1;
  int const* cuts = nullptr;  // stages + 1 units
  short const* stage_of_unit = nullptr;
  value_table values;
  boundary_table boundaries;
  bool const* dropped = nullptr;  // by forward value: recomputed for backward
  per_op_list<fused_view> fused;
  per_op_list<int> logits_read;  // the number of reads of the logits in kernel_lists::uses
  group_numbers numbers;
  unsigned const* written = nullptr;  // by group, see operands_written
  bool splits_backward = false;       // B and W run apart: values that B makes for W outlive B
  bool recomputes_ahead = false;      // R runs apart: values that R makes for backward outlive R
  view<loss_input> further_inputs{};  // what further losses read

  /// The place where the ops run again whose values a stage drops.
  constexpr recompute_place place_of_recompute(bool drops) const {
    return !drops             ? recompute_place::nowhere
           : recomputes_ahead ? recompute_place::ahead
                              : recompute_place::in_backward;
  }
};

/// The number of reads of a value, by list of ops: see kernel_lists::uses.
constexpr per_op_list<int> reads_of(int value, per_op_list<int const*> const& uses) {
  per_op_list<int> n;
  for (op_list l : every_op_list) n[l] = uses[l][value];
  return n;
}

/// Finds the ranges of every stage of a graph with these gradients. Backward lists run from the
/// last stage to the first.
///
/// shape: -> ranges[stages]
constexpr void find_ranges(graph_view const& g, gradient_view const& backward,
                           compiled_model const& m, stage_range* ranges) {
  for (int s = 0; s < m.stages; ++s) {
    stage_range& r = ranges[s];
    r.units = range{m.cuts[s], m.cuts[s + 1]};
    r.values = range{g.first_value(r.units.begin), g.first_value(r.units.end)};
    r.parameters = range{g.first_parameter(r.units.begin), g.first_parameter(r.units.end)};
  }
  // Gradients are in the order of the backward ops, units descending.
  int v = 0;
  for (int s = m.stages - 1; s >= 0; --s) {
    ranges[s].gradients.begin = g.values.count + v;
    while (v < backward.values.count && m.stage_of_unit[backward.values.items[v].unit] == s) ++v;
    ranges[s].gradients.end = g.values.count + v;
  }
  for (op_list l : every_op_list) {
    bool const ascending = l == op_list::forward || l == op_list::recompute;
    view<segment> const segments = m.fused[l].segments;
    int i = 0;
    for (int k = 0; k < m.stages; ++k) {
      int const s = ascending ? k : m.stages - 1 - k;
      ranges[s].segments[l].begin = i;
      while (i < segments.count && m.stage_of_unit[segments.items[i].unit] == s) ++i;
      ranges[s].segments[l].end = i;
    }
  }
}

/// The address at which a stage between two boundaries reads a value of another stage; none if
/// neither boundary has the value.
constexpr address from_neighbour(boundary const& entered, boundary const& left, operand x) {
  if (int const i = find(entered.forward, x); i >= 0)
    return address{region::boundary_in, entered.forward.items[i].offset};
  if (int const i = find(left.gradient, x); i >= 0)
    return address{region::gradient_in, left.gradient.items[i].offset};
  return address{};
}

}  // namespace pp::detail
