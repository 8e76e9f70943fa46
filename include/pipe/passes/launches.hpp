// SPDX-License-Identifier: BSL-1.0
//
// The launches of the programs of a stage, with every operand resolved to an address. They are made
// at run time, before the first step: as constants, launches were a large part of the object file
// and of the time to compile it.
#pragma once

#include <pipe/passes/memory.hpp>

namespace pp::detail {

/// The addresses of the operands of a stage's launches.
///
/// values, recomputed: the addresses of values in the forward program and in all other programs,
/// which differ for a value that is computed again.
struct operand_places {
  stage_range r;
  boundary entered, left;  // before and after the stage
  number_widths widths;
  address const *values = nullptr,
                *recomputed = nullptr;  // by value of the stage, see layout_sinks
  long const *parameters = nullptr, *transposed = nullptr;
  copy_layout const* layouts = nullptr;  // of transposed copies, by parameter of the model

  /// The address from which kernels read a parameter: its 16-bit copy, where there are copies.
  constexpr address resolve_parameter(int index) const {
    long const at = parameters[index - r.parameters.begin];
    if (!widths.has_copies()) return address{region::parameters, at};
    return address{region::copies, at / widths.element * widths.value};
  }
  /// Whether operand x is a transposed copy in panels.
  constexpr bool is_in_panels(operand x) const {
    return x.where == space::parameter_transposed && layouts[x.index] == copy_layout::panels;
  }
  /// The address of operand x in program p; none for a value without memory.
  constexpr address resolve(program p, operand x) const {
    if (x.where == space::value) {
      int const v = r.local(x.index);
      if (v < 0) return from_neighbour(entered, left, x);
      return p == program::forward ? values[v] : recomputed[v];
    }
    switch (x.where) {
      case space::none:
      case space::value: break;
      case space::input: return address{input_region(x.index), 0};
      case space::label: return address{region::label, 0};
      case space::parameter: return resolve_parameter(x.index);
      case space::parameter_gradient:
        return address{region::parameter_gradients, parameters[x.index - r.parameters.begin]};
      case space::buffer: return address{region::buffers, parameters[x.index - r.parameters.begin]};
      case space::buffer_sum:
        return address{region::buffer_sums, parameters[x.index - r.parameters.begin]};
      case space::parameter_transposed: {
        long const copy = transposed[x.index - r.parameters.begin];
        return copy < 0 ? resolve_parameter(x.index) : address{region::transposed, copy};
      }
      case space::random: return address{region::random, x.index * long(sizeof(int))};
    }
    return address{};
  }
};

/// The tables from which launches are made, besides the places of their operands. The ops are not
/// among them: see compiled_model.
struct launch_source {
  per_op_list<fused_view> fused;
  group_numbers numbers;
  unsigned const* written = nullptr;  // by group, see operands_written
  value_table values;
  view<long> parameter_elements;  // by parameter
};

/// The number of operands of the launches of a program.
constexpr int count_operands(per_op_list<fused_view> const& fused, program p, stage_range const& r,
                             recompute_place again) {
  int n = 0;
  for (op_list l : every_op_list) {
    range const all = r.segments[l];
    if (!runs(p, l, again) || all.size() == 0) continue;
    segment const* const segments = fused[l].segments.items;
    n += segments[all.end - 1].first + segments[all.end - 1].operands - segments[all.begin].first;
  }
  return n;
}

/// The number of launches of a program, each chain counted as one.
constexpr int count_launches(view<scheduled_segment> order, view<launch_chain> chains) {
  int n = order.count;
  for (launch_chain const& c : chains) n -= c.count - 1;
  return n;
}

/// Joins each chain of a program into one launch, which has the operands of the chain's launches in
/// order, the number of the chain, and the layer of the chain's first launch that is not
/// recomputed.
///
/// shape: single[n], numbers[chains] -> launches[count_launches()]
[[gnu::cold]] constexpr void join_launches(view<launch> single, view<launch_chain> chains,
                                           int const* numbers, launch* launches) {
  chain_walk walk{chains};
  for (int i = 0, n = 0; i < single.count; ++n) {
    bool const joined = walk.meets(i);
    launch_chain const c = joined ? chains[walk.next] : launch_chain{i};
    launches[n] = single[i + c.recomputed];
    launches[n].first = single[i].first;
    if (joined) launches[n].group = numbers[walk.next];
    for (int k = 0; k < c.count; ++k)
      if (k != c.recomputed) launches[n].count += single[i + k].count;
    i += c.count;
  }
}

/// Lists the launches of a program and their operands.
///
/// shape: order[n] -> launches[n], placed[count_operands()]
[[gnu::cold]] constexpr void list_launches(launch_source const& from, operand_places const& places,
                                           program p, view<scheduled_segment> order,
                                           launch* launches, placed_operand* placed) {
  int n = 0;
  for (int i = 0; i < order.count; ++i) {
    scheduled_segment const s = order.items[i];
    fused_view const& fused = from.fused[s.list];
    segment const with = fused.segments[s.index];
    int const g = from.numbers.number(s.list, with.group);
    launches[i] = launch{
        g, n, with.operands, with.unit, s.list == op_list::recompute, with.axis, with.key_axis};
    for (int k = 0; k < with.operands; ++k, ++n) {
      operand const x = fused.operands[with.first + k];
      bool const is_value = x.where == space::value;
      address const at = places.resolve(p, x);
      if (places.is_in_panels(x)) launches[i].panels |= 1u << k;
      long elements = 0;
      if ((from.written[g] >> k & 1) && at.where != region::none)
        elements =
            is_value ? from.values.batch_elements(x.index) : from.parameter_elements[x.index];
      bool const is_wide = !is_value || from.values.is_wide(x.index);
      unsigned char axis = 0;
      if (is_value) axis = with.apart >> k & 1 ? with.apart_axis : with.axis;
      placed[n] = placed_operand{at, elements, is_wide, axis, with.unit};
    }
  }
}

}  // namespace pp::detail
