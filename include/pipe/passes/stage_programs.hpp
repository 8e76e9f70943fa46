// SPDX-License-Identifier: BSL-1.0
//
// One stage as constants, ready to run: the order of its kernels in each program, the address of
// every operand, and the memory that it needs.
#pragma once

#include <pipe/base/list.hpp>
#include <pipe/passes/launches.hpp>

namespace pp::detail {

/// The memory of a stage's layout.
template <int Values, int Parameters, int Passed>
struct stage_layout : layout_totals {
  list<address, Values> values;       // in forward: forward values, then gradients
  list<address, Values> recomputed;   // in backward
  list<long, Parameters> parameters;  // offset of each parameter and of its gradient
  list<int, Parameters> by_offset;    // parameters in the order of their offsets
  list<long, Parameters> transposed;  // offset of the transposed copy, where there is one
  // Values and gradients that leave the stage without being computed at their slot.
  list<copied, Passed> passed_values, passed_gradients;
  /// `Passed` is room for either list; these are their lengths.
  int passed_value_count = 0, passed_gradient_count = 0;
};

/// Stage S of compilation C.
///
/// Drops: values that the recompute policy drops are recomputed; otherwise all are stored.
/// Chains: see passes/chains.hpp; number(chain_kernel) takes the place of a group's number in the
/// launch of a chain.
template <class C, int S, bool Drops, class Chains>
struct stage_programs {
  static constexpr stage_range range = C::ranges[S];
  static constexpr bool splits_backward = C::splits_backward, drops = Drops;

  template <program P>
  static constexpr auto order = [](auto...) {
    list<scheduled_segment, length_of(P, range, Drops)> o;
    order_program(C::fused_lists, range, P, Drops, o.items);
    return o;
  }();
  template <program P>
  static constexpr view<scheduled_segment> order_view{order<P>.items, order<P>.size()};

  // ---- chains ----

  template <program P>
  static constexpr unplaced_program unplaced{&C::whole, C::shapes.items, order_view<P>};
  template <int Most>
  struct chain_memory {
    list<launch_chain, Most> items;
    int count = 0;
  };
  /// By kernel group, whether it may be in a chain.
  static constexpr auto may_join = [](auto...) {
    list<bool, Chains::any ? C::groups : 0> may;
    if constexpr (Chains::any)
      for (int g = 0; g < C::groups; ++g) may[g] = Chains::rule.may_join(C::shapes[g], C::samples);
    return may;
  }();
  template <program P>
  static constexpr auto chain_list = [](auto...) {
    // A chain has two launches or more.
    chain_memory<(Chains::any ? order<P>.size() / 2 : 0)> found;
    if constexpr (Chains::any) {
      sink<launch_chain> to{found.items.items};
      find_chains(Chains::rule, may_join.items, unplaced<P>, to);
      found.count = to.count;
    }
    return found;
  }();
  template <program P>
  static constexpr view<launch_chain> chains{chain_list<P>.items.items, chain_list<P>.count};
  /// Whether a program of the stage has chains: otherwise all values are in memory.
  static constexpr bool has_chains = [](auto...) {
    if constexpr (!Chains::any)
      return false;
    else if constexpr (splits_backward)
      return chains<program::forward>.count + chains<program::backward_input>.count +
                 chains<program::backward_weight>.count >
             0;
    else
      return chains<program::forward>.count + chains<program::backward>.count > 0;
  }();

  // ---- memory ----

  template <program P>
  static constexpr void note(value_layout& pass, [[maybe_unused]] bool* in_memory) {
    pass.note(P, order_view<P>, chains<P>);
    if constexpr (has_chains)
      note_in_memory(Chains::rule, unplaced<P>, chains<P>, range, in_memory);
  }

  /// Parameters first, then values: the programs are noted in the order in which they run.
  static constexpr auto layout = [](auto...) {
    constexpr int values = range.local_values(), parameters = range.parameters.size();
    constexpr int passed = C::boundaries[S].gradient.count > C::boundaries[S + 1].forward.count
                               ? C::boundaries[S].gradient.count
                               : C::boundaries[S + 1].forward.count;
    stage_layout<values, parameters, passed> l;
    layout_sinks out{
        l.values.items,     l.recomputed.items,      l.parameters.items,        l.by_offset.items,
        l.transposed.items, {l.passed_values.items}, {l.passed_gradients.items}};
    list<char, parameters> turn;
    lay_out_parameters(C::whole, range, turn.items, out, l.bytes);
    list<list<occurrence, values>, program_count> seen;
    list<scratch_block, 2 * values + 1> forward_blocks, backward_blocks;
    layout_scratch scratch{{}, forward_blocks.items, backward_blocks.items};
    for (int p = 0; p < program_count; ++p) scratch.seen[p] = seen[p].items;
    list<bool, has_chains ? values : 0> in_memory;
    if constexpr (has_chains) scratch.in_memory = in_memory.items;
    value_layout pass(C::whole, range, S, Drops, scratch);
    note<program::forward>(pass, in_memory.items);
    if constexpr (splits_backward) {
      note<program::backward_input>(pass, in_memory.items);
      note<program::backward_weight>(pass, in_memory.items);
    } else {
      note<program::backward>(pass, in_memory.items);
    }
    pass.run(out, l);
    l.passed_value_count = out.passed_values.count;
    l.passed_gradient_count = out.passed_gradients.count;
    return l;
  }();

  static constexpr layout_totals const& totals() { return layout; }

  /// Values and gradients that leave the stage without being computed at their slot.
  static constexpr view<copied> passed_values{layout.passed_values.items,
                                              layout.passed_value_count},
      passed_gradients{layout.passed_gradients.items, layout.passed_gradient_count};

  /// Where the launches of all programs find their operands.
  static constexpr operand_places places{range,
                                         C::boundaries[S],
                                         C::boundaries[S + 1],
                                         C::widths,
                                         layout.values.items,
                                         layout.recomputed.items,
                                         layout.parameters.items,
                                         layout.transposed.items};
  /// The address of operand x in program P.
  template <program P>
  static constexpr address resolve(operand x) {
    return places.resolve(P, x);
  }

  /// The kernels of the chains of program P.
  template <program P>
  static constexpr auto chain_kernels = [](auto...) {
    list<chain_kernel, chains<P>.count> all;
    if constexpr (Chains::any)
      for (int c = 0; c < all.size(); ++c)
        all[c] = kernel_of(Chains::rule, unplaced<P>, chains<P>[c],
                           [](operand x) { return resolve<P>(x).where != region::none; });
    return all;
  }();

  // ---- launches ----

  /// The launches of a program, chains counted as one, and the operands of all.
  template <int Launches, int Operands>
  struct launch_memory {
    list<launch, Launches> items;
    list<placed_operand, Operands> operands;
  };
  /// The memory of the launches of program P: empty until the program calls launches<P>(), at an
  /// address that is a constant.
  template <program P>
  static inline launch_memory<count_launches(order_view<P>, chains<P>),
                              count_operands(C::fused_lists, P, range, Drops)>
      launch_list{};
  /// The launches of program P, made by the first call (thread-safe).
  template <program P>
  static auto const& launches() {
    static bool const made = [] {
      auto& r = launch_list<P>;
      if constexpr (chains<P>.count == 0) {
        list_launches(C::for_launches, places, P, order_view<P>, r.items.items, r.operands.items);
      } else {
        static list<launch, order<P>.size()> single;
        list_launches(C::for_launches, places, P, order_view<P>, single.items, r.operands.items);
        list<int, chains<P>.count> numbers;
        for (int c = 0; c < numbers.size(); ++c) numbers[c] = Chains::number(chain_kernels<P>[c]);
        join_launches(view<launch>{single.items, single.size()}, chains<P>, numbers.items,
                      r.items.items);
      }
      return true;
    }();
    static_cast<void>(made);
    return launch_list<P>;
  }
};

}  // namespace pp::detail
