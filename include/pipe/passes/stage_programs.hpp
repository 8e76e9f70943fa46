// SPDX-License-Identifier: BSL-1.0
//
// One stage as constants, ready to run: the order of its kernels in each program, the address of
// every operand, and the sizes of its memory.
#pragma once

#include <pipe/base/list.hpp>
#include <pipe/passes/launches.hpp>
#include <pipe/passes/stage_layout.hpp>

namespace pp::detail {

/// Stage S of compilation C.
///
/// Drops: values that the recompute policy drops are recomputed; otherwise all values are stored.
/// Chains: see passes/chains.hpp; Chains::number(chain_kernel) is the number that a launch of a
/// chain has in place of a group's.
template <class C, int S, bool Drops, class Chains>
struct stage_programs {
  static constexpr stage_range range = C::ranges[S];
  static constexpr bool splits_backward = C::splits_backward,
                        recomputes_ahead = C::recomputes_ahead, drops = Drops;
  static constexpr recompute_place again = C::whole.place_of_recompute(Drops);

  /// The programs that the schedule runs. Each list below is one constant for all programs, which
  /// nvcc compiles faster than a constant for each: see compiled_model.
  static constexpr view<program> run = programs_of(splits_backward, recomputes_ahead);
  /// The number of segments of the programs before p in `run`; of all programs, if p is not in
  /// `run`.
  static constexpr int segments_before(program p) {
    int n = 0;
    for (int i = 0; i < run.count && run[i] != p; ++i) n += length_of(run[i], range, again);
    return n;
  }
  static constexpr int segments = segments_before(program{program_count});

  /// The segments of the programs, one program after the other, without segments that chains
  /// recompute.
  static constexpr auto plain_orders = [](auto...) {
    list<scheduled_segment, segments> o;
    for (int i = 0; i < run.count; ++i)
      order_program(C::fused_lists, range, run[i], again, o.items + segments_before(run[i]));
    return o;
  }();
  static constexpr view<scheduled_segment> plain_order_of(program p) {
    return {plain_orders.items + segments_before(p), length_of(p, range, again)};
  }

  // ---- chains ----

  static constexpr unplaced_program unplaced_of(view<scheduled_segment> order) {
    return unplaced_program{C::fused_lists, C::numbers, C::shapes.items, C::samples, order};
  }
  /// The chains of the programs, one program after the other; program p has items [first[p],
  /// first[p] + count[p]).
  template <int Most>
  struct chain_memory {
    list<launch_chain, Most> items;
    list<bool, Chains::any ? C::groups : 0> alone;  // by group: a launch of it is in no chain
    int first[program_count]{}, count[program_count]{};
    int all = 0;
  };
  /// Whether a kernel group may be in a chain, by group.
  static constexpr auto may_join = [](auto...) {
    list<bool, Chains::any ? C::groups : 0> may;
    if constexpr (Chains::any)
      for (int g = 0; g < C::groups; ++g) may[g] = Chains::rule.may_join(C::shapes[g], C::samples);
    return may;
  }();
  /// The chains of the programs without the launches that chains recompute, and the groups that are
  /// launched outside of chains.
  static constexpr auto plain_chains = [](auto...) {
    // A chain has two launches or more.
    chain_memory<(Chains::any ? segments / 2 : 0)> found;
    if constexpr (Chains::any) {
      sink<launch_chain> to{found.items.items};
      for (int i = 0; i < run.count; ++i) {
        int const p = int(run[i]);
        found.first[p] = to.count;
        find_chains(Chains::rule, may_join.items, unplaced_of(plain_order_of(run[i])), to,
                    found.alone.items);
        found.count[p] = to.count - found.first[p];
      }
      found.all = to.count;
    }
    return found;
  }();
  static constexpr view<launch_chain> plain_chains_of(program p) {
    return {plain_chains.items.items + plain_chains.first[int(p)], plain_chains.count[int(p)]};
  }

  /// The launches of forward that the chains of backward recompute, and the number of these
  /// launches and of their operands. There are none if backward is split into B and W, or if the
  /// recompute policy recomputes values of the stage.
  struct recomputed_memory {
    list<recomputed_launches,
         Chains::any && !splits_backward && !Drops ? plain_chains.count[int(program::backward)] : 0>
        items;
    int launches = 0, operands = 0;
    int loss_chain = -1;  // the chain that takes the loss
  };
  static constexpr auto recomputed = [](auto...) {
    recomputed_memory all;
    if constexpr (all.items.size() > 0) {
      unplaced_program const forward = unplaced_of(plain_order_of(program::forward)),
                             backward = unplaced_of(plain_order_of(program::backward));
      for (int c = 0; c < all.items.size(); ++c) {
        recomputed_launches const r =
            Chains::rule.recomputed(forward, plain_chains_of(program::forward), backward,
                                    plain_chains_of(program::backward)[c], Chains::may_take_loss());
        all.items[c] = r;
        if (r.takes_loss) all.loss_chain = c;
        all.launches += r.count;
        for (int i = 0; i < r.count; ++i) all.operands += forward.segment_of(r.first + i).operands;
      }
    }
    return all;
  }();
  static constexpr bool chains_recompute = recomputed.launches > 0;
  /// Whether a chain of backward computes the loss, and before it the layers of the chain that lead
  /// to the loss. The last launches of forward, which do the same, then run only in evaluation and
  /// inference.
  static constexpr bool has_loss_in_backward = recomputed.loss_chain >= 0;
  /// The segments of forward that a training step runs.
  static constexpr view<scheduled_segment> trained_order() {
    view<scheduled_segment> order = plain_order_of(program::forward);
    if constexpr (has_loss_in_backward) order.count = recomputed.items[recomputed.loss_chain].first;
    return order;
  }

  /// The backward program and its chains, with the launches that chains recompute. These launches
  /// are in the forward program as well; here they have operands of their own, most of which have
  /// no address.
  struct backward_memory {
    list<scheduled_segment,
         chains_recompute ? length_of(program::backward, range, again) + recomputed.launches : 0>
        order;
    list<launch_chain, chains_recompute ? recomputed.items.size() : 0> chains;
  };
  static constexpr auto recomputing = [](auto...) {
    backward_memory made;
    if constexpr (chains_recompute) {
      for (int c = 0; c < made.chains.size(); ++c)
        made.chains[c] = plain_chains_of(program::backward)[c];
      insert_recomputed(plain_order_of(program::forward),
                        {recomputed.items.items, recomputed.items.size()},
                        plain_order_of(program::backward), made.chains.items, made.order.items);
    }
    return made;
  }();

  static constexpr view<scheduled_segment> order_of(program p) {
    if (chains_recompute && p == program::backward)
      return {recomputing.order.items, recomputing.order.size()};
    return plain_order_of(p);
  }
  static constexpr view<launch_chain> chains_of(program p) {
    if (chains_recompute && p == program::backward)
      return {recomputing.chains.items, recomputing.chains.size()};
    return plain_chains_of(p);
  }
  /// needs: the schedule runs P
  template <program P>
  static constexpr view<scheduled_segment> order = order_of(P);
  template <program P>
  static constexpr unplaced_program unplaced = unplaced_of(order_of(P));
  template <program P>
  static constexpr view<launch_chain> chains = chains_of(P);
  /// Whether a program of the stage has chains. Without chains all values are in memory.
  static constexpr bool has_chains = plain_chains.all > 0;

  // ---- memory ----

  static constexpr auto layout = [](auto...) {
    constexpr int values = range.local_values();
    constexpr int sent = C::boundaries[S + 1].forward.count,
                  returned = C::boundaries[S].gradient.count;
    layout_scratch scratch;
    [[maybe_unused]] list<bool, has_chains ? values : 0> in_memory;
    if constexpr (has_chains) scratch.in_memory = in_memory.items;
    [[maybe_unused]] list<bool, has_loss_in_backward ? values : 0> in_evaluation;
    if constexpr (has_loss_in_backward) {
      scratch.in_evaluation = in_evaluation.items;
      note_in_memory(Chains::rule, unplaced_of(plain_order_of(program::forward)),
                     plain_chains_of(program::forward), range, in_evaluation.items);
    }
    return lay_out_stage(
        {C::whole, range, S, Drops}, scratch, fixed<values>{}, fixed<range.parameters.size()>{},
        fixed<(sent > returned ? sent : returned)>{}, fixed<run.count * values>{},
        [&](value_layout& pass, program p) {
          view<launch_chain> const joined = chains_of(p);
          pass.note(p, order_of(p), joined);
          if constexpr (has_chains)
            note_in_memory(Chains::rule,
                           unplaced_of(p == program::forward ? trained_order() : order_of(p)),
                           joined, range, in_memory.items);
        });
  }();

  static constexpr layout_totals const& totals() { return layout; }

  /// Values and gradients that leave the stage but are not computed in their boundary slots.
  static constexpr view<copied> passed_values{layout.passed_values.items,
                                              layout.passed_value_count},
      passed_gradients{layout.passed_gradients.items, layout.passed_gradient_count};

  /// The addresses of the operands of all programs.
  static constexpr operand_places places{range,
                                         C::boundaries[S],
                                         C::boundaries[S + 1],
                                         C::widths,
                                         layout.values.items,
                                         layout.recomputed.items,
                                         layout.parameters.items,
                                         layout.transposed.items,
                                         C::whole.transposed};
  /// The address of operand x in program P.
  template <program P>
  static constexpr address resolve(operand x) {
    return places.resolve(P, x);
  }

  /// The kernels of the chains of program P.
  template <program P>
  static constexpr auto chain_kernels = [](auto...) {
    list<chain_kernel, chains<P>.count> all;
    if constexpr (all.size() > 0) {
      list<bool, range.local_values()> read;  // that forward needs in memory
      if constexpr (P == program::forward)
        note_in_memory(Chains::rule, unplaced<P>, chains<P>, range, read.items);
      for (int c = 0; c < all.size(); ++c)
        all[c] = kernel_of(
            Chains::rule, unplaced<P>, chains<P>[c],
            [](operand x) { return resolve<P>(x).where != region::none; },
            [&](operand x) {
              return P == program::forward && x.where == space::value &&
                     resolve<P>(x).where == region::record && !read[range.local(x.index)];
            });
    }
    return all;
  }();

  // ---- launches ----

  /// The numbers of launches, of launches that a training step runs, and of operands, by program. A
  /// chain counts as one launch.
  struct launch_counts {
    int launches[program_count]{}, trained[program_count]{}, operands[program_count]{};
  };
  static constexpr launch_counts counts = [](auto...) {
    launch_counts n;
    for (int i = 0; i < run.count; ++i) {
      int const p = int(run[i]);
      view<launch_chain> const joined = chains_of(run[i]);
      n.launches[p] = count_launches(order_of(run[i]), joined);
      n.trained[p] = n.launches[p];
      if (has_loss_in_backward && run[i] == program::forward) n.trained[p] -= 2;  // chain, loss
      n.operands[p] = count_operands(C::fused_lists, run[i], range, again) +
                      (run[i] == program::backward ? recomputed.operands : 0);
    }
    return n;
  }();
  template <int Launches, int Operands>
  struct launch_memory {
    list<launch, Launches> items;
    list<placed_operand, Operands> operands;
  };
  /// The memory of the launches of program P, at a constant address. The first call of
  /// launches<P>() fills it.
  template <program P>
  static inline launch_memory<counts.launches[int(P)], counts.operands[int(P)]> launch_list{};
  /// The launches of program P, made by the first call (thread-safe).
  template <program P>
  static auto const& launches() {
    static bool const made = [] {
      auto& r = launch_list<P>;
      if constexpr (chains<P>.count == 0) {
        list_launches(C::for_launches, places, P, order<P>, r.items.items, r.operands.items);
      } else {
        static list<launch, order<P>.count> single;
        list_launches(C::for_launches, places, P, order<P>, single.items, r.operands.items);
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
