// SPDX-License-Identifier: BSL-1.0
//
// The launches of a program, with every operand resolved to an address.
#pragma once

#include <pipe/passes/memory.hpp>

namespace pp::detail {

/// The addresses of the operands of a stage's launches.
///
/// values, recomputed: where forward and backward programs find a value; they differ for one that
/// backward computes again.
struct operand_places {
  stage_range r;
  int stage = 0;
  address const *values = nullptr,
                *recomputed = nullptr;  // by value of the stage, see layout_sinks
  long const *parameters = nullptr, *transposed = nullptr;

  /// The address from which kernels read a parameter: its 16-bit copy, where there are copies.
  constexpr address resolve_parameter(compiled_model const& m, int index) const {
    long const at = parameters[index - r.parameters.begin];
    if (!m.values.widths.has_copies()) return address{region::parameters, at};
    return address{region::copies, at / m.values.widths.element * m.values.widths.value};
  }
  /// The address of operand x in program p; none for a value without memory.
  constexpr address resolve(compiled_model const& m, program p, operand x) const {
    if (x.where == space::value) {
      int const v = r.local(x.index);
      if (v < 0) return from_neighbour(m, stage, x);
      return p == program::forward ? values[v] : recomputed[v];
    }
    switch (x.where) {
      case space::none:
      case space::value: break;
      case space::input: return address{input_region(x.index), 0};
      case space::label: return address{region::label, 0};
      case space::parameter: return resolve_parameter(m, x.index);
      case space::parameter_gradient:
        return address{region::parameter_gradients, parameters[x.index - r.parameters.begin]};
      case space::buffer: return address{region::buffers, parameters[x.index - r.parameters.begin]};
      case space::buffer_sum:
        return address{region::buffer_sums, parameters[x.index - r.parameters.begin]};
      case space::parameter_transposed:
        return address{region::transposed, transposed[x.index - r.parameters.begin]};
      case space::random: return address{region::random, x.index * long(sizeof(int))};
    }
    return address{};
  }
};

/// The number of operands of the launches of a program.
constexpr int count_operands(compiled_model const& m, view<scheduled_segment> order) {
  int n = 0;
  for (scheduled_segment const& s : order) n += m.kernels.fused[s.list].segments[s.index].operands;
  return n;
}

/// The number of launches of a program, each chain counted as one.
constexpr int count_launches(view<scheduled_segment> order, view<launch_chain> chains) {
  int n = order.count;
  for (launch_chain const& c : chains) n -= c.count - 1;
  return n;
}

/// The launches of a program with each chain joined into one launch, which has the operands of its
/// launches in order and the number of the chain.
///
/// shape: single[n], numbers[chains] -> launches[count_launches()]
constexpr void join_launches(view<launch> single, view<launch_chain> chains, int const* numbers,
                             launch* launches) {
  chain_walk walk{chains};
  for (int i = 0, n = 0; i < single.count; ++n) {
    launches[n] = single[i];
    bool const joined = walk.meets(i);
    int const count = joined ? chains[walk.next].count : 1;
    if (joined) launches[n].group = numbers[walk.next];
    for (int k = 1; k < count; ++k) launches[n].count += single[i + k].count;
    i += count;
  }
}

/// Lists the launches of a program and their operands.
///
/// shape: order[n] -> launches[n], placed[count_operands(order)]
constexpr void list_launches(compiled_model const& m, operand_places const& places, program p,
                             view<scheduled_segment> order, launch* launches,
                             placed_operand* placed) {
  int n = 0;
  for (int i = 0; i < order.count; ++i) {
    scheduled_segment const s = order.items[i];
    fused_view const fused = m.kernels.fused.of[int(s.list)];
    segment const with = fused.segments.items[s.index];
    operand const* const first = fused.operands.items + with.first;
    int const g = m.numbers.number(s.list, with.group);
    unsigned const written = m.written[g];
    short const layer = m.kernels.ops[s.list].items[with.begin].unit;
    launches[i] = launch{g, n, with.operands, layer, s.list == op_list::recompute};
    for (int k = 0; k < with.operands; ++k, ++n) {
      operand const x = first[k];
      bool const is_value = x.where == space::value;
      address const at = places.resolve(m, p, x);
      long elements = 0;
      if ((written >> k & 1) && at.where != region::none)
        elements = is_value ? m.values.elements(x.index) * m.values.samples
                            : m.graph.parameters.items[x.index].elements();
      placed[n] = placed_operand{at, elements, !is_value || m.values.is_wide(x.index), layer};
    }
  }
}

}  // namespace pp::detail
