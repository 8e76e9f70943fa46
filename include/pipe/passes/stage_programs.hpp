// SPDX-License-Identifier: BSL-1.0
//
// One stage as constants, ready to run: the order of its kernels in each program, where every
// operand is, and how much memory that takes.
#pragma once

#include <pipe/base/list.hpp>
#include <pipe/passes/launches.hpp>

namespace pp {

/// The memory of a stage's layout.
template <int Values, int Parameters, int Passed>
struct stage_layout : layout_totals {
  list<address, Values> values;       // as forward finds them: forward values, then gradients
  list<address, Values> again;        // as backward finds them
  list<long, Parameters> parameters;  // offset of each parameter and of its gradient
  list<int, Parameters> by_offset;    // parameters in the order in which they lie
  list<long, Parameters> transposed;  // offset of the transposed copy, where there is one
  list<copied, Passed> passed_values,
      passed_gradients;  // what leaves without being made on the way
  int passed_value_count = 0, passed_gradient_count = 0;
};

/// Stage S of compilation C. Drops: values that the recompute policy drops are not kept but made
/// again; otherwise all are kept.
template <class C, int S, bool Drops>
struct stage_programs {
  static constexpr stage_range range = C::ranges[S];
  static constexpr bool splits_backward = C::whole.splits_backward, drops = Drops;

  template <program P>
  static constexpr auto order = [](auto...) {
    list<scheduled_segment, length_of(P, range, Drops)> o;
    sink<scheduled_segment> to{o.items};
    order_program(C::whole, range, P, Drops, to);
    return o;
  }();
  template <program P>
  static constexpr view<scheduled_segment> order_view{order<P>.items, order<P>.size()};

  static constexpr auto layout = [](auto...) {
    constexpr int values = range.local_values(), parameters = range.parameters.size();
    constexpr int passed =
        C::whole.boundaries[S].gradient.count > C::whole.boundaries[S + 1].forward.count
            ? C::whole.boundaries[S].gradient.count
            : C::whole.boundaries[S + 1].forward.count;
    stage_layout<values, parameters, passed> l;
    layout_sinks out{
        l.values.items,     l.again.items,           l.parameters.items,        l.by_offset.items,
        l.transposed.items, {l.passed_values.items}, {l.passed_gradients.items}};
    list<char, parameters> turn;
    lay_out_parameters(C::whole, range, turn.items, out, l.bytes);
    list<list<occurrence, values>, program_count> seen;
    list<scratch_block, 2 * values + 1> forward_blocks, backward_blocks;
    layout_scratch scratch{{}, forward_blocks.items, backward_blocks.items};
    for (int p = 0; p < program_count; ++p) scratch.seen[p] = seen[p].items;
    value_layout pass(C::whole, range, S, Drops, scratch);
    pass.note(program::forward, order_view<program::forward>);
    if constexpr (splits_backward) {
      pass.note(program::backward_input, order_view<program::backward_input>);
      pass.note(program::backward_weight, order_view<program::backward_weight>);
    } else {
      pass.note(program::backward, order_view<program::backward>);
    }
    pass.run(out, l);
    l.passed_value_count = out.passed_values.count;
    l.passed_gradient_count = out.passed_gradients.count;
    return l;
  }();

  static constexpr layout_totals const& totals() { return layout; }

  /// What leaves the stage without being made on the way.
  static constexpr view<copied> passed_values{layout.passed_values.items,
                                              layout.passed_value_count},
      passed_gradients{layout.passed_gradients.items, layout.passed_gradient_count};

  static constexpr operand_places places{range,
                                         S,
                                         layout.values.items,
                                         layout.again.items,
                                         layout.parameters.items,
                                         layout.transposed.items};
  /// Where program P finds operand x.
  template <program P>
  static constexpr address resolve(operand x) {
    return places.resolve(C::whole, P, x);
  }

  /// The launches of program P.
  template <int Launches, int Operands>
  struct resolved {
    static constexpr int launches = Launches;
    list<launch, Launches> items;
    list<placed_operand, Operands> operands;
  };
  template <program P>
  static constexpr auto launches = [](auto...) {
    resolved<order<P>.size(), count_operands(C::whole, order_view<P>)> r;
    list_launches(C::whole, places, P, order_view<P>, r.items.items, r.operands.items);
    return r;
  }();
};

}  // namespace pp
