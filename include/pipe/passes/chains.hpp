// SPDX-License-Identifier: BSL-1.0
//
// Chains of launches that a backend runs as one kernel. Chains are found before memory is planned,
// since a value that is made and read only within a chain needs no memory.
#pragma once

#include <pipe/passes/programs.hpp>

namespace pp::detail {

/// Launches [first, first + count) of a program as one launch. `form`: the backend's number for the
/// way in which it runs the chain. `recomputed`: the number of launches of forward at the beginning
/// of a chain of backward, whose results the chain computes for itself.
struct launch_chain {
  int first = 0, count = 1, form = 0, recomputed = 0;
  friend constexpr bool operator==(launch_chain const&, launch_chain const&) = default;
};

/// Launches [first, first + count) of the forward program that a chain of backward recomputes
/// before its own launches; `form`: the form of the chain with these launches. takes_loss: these
/// launches are the last of the forward program and end with the loss, so that forward of a
/// training step need not run them.
struct recomputed_launches {
  int first = 0, count = 0, form = 0;
  bool takes_loss = false;
};

/// The kernel of a chain: the groups of its launches, and which of their results are in memory.
struct chain_kernel {
  static constexpr int most = 16;
  /// `form` and `recomputed` as in launch_chain; count <= most. Bit k of `dropped`: the result that
  /// launch k hands to the next launch has no memory.
  int count = 0, form = 0, recomputed = 0;
  unsigned dropped = 0;
  /// Results that only backward reads, so that evaluation need not store them. Bit k: the result
  /// that launch k hands to the next launch; bit most + k: all other results of launch k.
  unsigned for_backward = 0;
  int groups[most]{};
  friend constexpr bool operator==(chain_kernel const&, chain_kernel const&) = default;
};
/// The maximum number of operands of a launch, of one group or of a chain.
inline constexpr int most_operands = chain_kernel::most * group::max_operands;

/// A program before its operands have addresses.
struct unplaced_program {
  per_op_list<fused_view> fused;  // see compiled_model
  group_numbers numbers;
  group const* shapes = nullptr;  // by number of the group
  int samples = 1;                // of a micro-batch
  view<scheduled_segment> order{};

  constexpr int size() const { return order.count; }
  /// The segment of launch i, and the number of its group among those of all lists.
  constexpr segment const& segment_of(int i) const {
    return fused[order[i].list].segments[order[i].index];
  }
  constexpr int group_of(int i) const { return numbers.number(order[i].list, segment_of(i).group); }
  constexpr group const& shape(int i) const { return shapes[group_of(i)]; }
  /// An operand of launch i; none for index -1.
  constexpr operand operand_of(int i, int index) const {
    return index < 0 ? operand{} : fused[order[i].list].operands[segment_of(i).first + index];
  }
};

/// The chain rule of a backend that has no chains. A backend with chains has a type with
///
///     static constexpr bool any = true;
///     static constexpr Rule rule;  // a value with
///       bool may_join(group const&, int samples) const;  // in some program
///       launch_chain longest(unplaced_program const&, int first) const;  // count 1: no chain
///       int taken(group const&) const;   // the operand that is the result of the launch before
///       int handed(group const&) const;  // the operand that the next launch reads, or -1
///       // Whether the chain's kernel stores an operand only if it has an address.
///       bool is_optional(group const&, int index) const;
///       // The launches of forward that a chain of backward recomputes; count 0: none.
///       // may_take_loss: behind the chain's layers, it may recompute the loss.
///       recomputed_launches recomputed(unplaced_program const& forward,
///                                      view<launch_chain> chains_of_forward,
///                                      unplaced_program const& backward,
///                                      launch_chain const&, bool may_take_loss) const;
///
/// and `static constexpr bool may_take_loss()`.
struct no_chains {
  static constexpr bool any = false;
};

/// Finds the chains of a program: from left to right, the longest chain at each launch.
///
/// may_join: by number of the group, Rule::may_join of the group
/// alone:    by number of the group, set if a launch of the group is in no chain
/// law:      chains do not overlap and are in the order of the program
template <class Rule>
constexpr void find_chains(Rule const& rule, bool const* may_join, unplaced_program const& p,
                           sink<launch_chain>& chains, bool* alone) {
  for (int i = 0; i < p.size();) {
    int const group = p.group_of(i);
    launch_chain c{i, 1, 0};
    if (may_join[group]) c = rule.longest(p, i);
    if (c.count > 1)
      chains.push_back(c);
    else
      alone[group] = true;
    i += c.count;
  }
}

/// Makes the backward program `order`: the launches of `plain`, with the launches of forward that a
/// chain recomputes in front of the chain's own.
///
/// shape: added[chains], plain[n], chains[chains] of `plain` -> chains[chains] of `order`, order[n
///        + recomputed launches]
constexpr void insert_recomputed(view<scheduled_segment> forward, view<recomputed_launches> added,
                                 view<scheduled_segment> plain, launch_chain* chains,
                                 scheduled_segment* order) {
  int n = 0, next = 0;
  auto const take_until = [&](int end) {
    for (; next < end; ++next) order[n++] = plain[next];
  };
  for (int c = 0; c < added.count; ++c) {
    launch_chain& chain = chains[c];
    take_until(chain.first);
    int const first = n, end = chain.first + chain.count;
    for (int i = 0; i < added[c].count; ++i) order[n++] = forward[added[c].first + i];
    take_until(end);
    chain.first = first;
    if (added[c].count == 0) continue;
    chain.count += added[c].count;
    chain.form = added[c].form;
    chain.recomputed = added[c].count;
  }
  take_until(plain.count);
}

/// A walk over the launches of a program that knows the chain of each.
struct chain_walk {
  view<launch_chain> chains{};
  int next = 0;

  /// Whether launch i is in a chain, which is then number `next`.
  ///
  /// needs: i ascends from call to call
  constexpr bool meets(int i) {
    while (next < chains.count && i >= chains[next].first + chains[next].count) ++next;
    return next < chains.count && i >= chains[next].first;
  }
};

/// Whether a launch that a chain recomputes makes operand x.
template <class Rule>
constexpr bool recomputes(Rule const& rule, unplaced_program const& p, launch_chain const& c,
                          operand const& x) {
  for (int i = c.first; i < c.first + c.recomputed; ++i)
    for (int index = 0; index < p.segment_of(i).operands; ++index)
      if (p.operand_of(i, index) == x && rule.is_optional(p.shape(i), index)) return true;
  return false;
}

/// Marks the values that a program needs in memory: all that its launches read or write, except for
/// values that a chain hands from one launch to the next or recomputes.
///
/// shape: -> in_memory[values of the stage], initially false
template <class Rule>
constexpr void note_in_memory(Rule const& rule, unplaced_program const& p,
                              view<launch_chain> chains, stage_range const& r, bool* in_memory) {
  chain_walk walk{chains};
  for (int i = 0; i < p.size(); ++i) {
    bool const joined = walk.meets(i);
    launch_chain const c = joined ? chains[walk.next] : launch_chain{};
    // The first launch of a chain, and its first launch that is not recomputed, read their main
    // operand from memory; every other launch takes it from the launch before.
    int const own = c.first + c.recomputed;
    int const taken = joined && i > c.first && i != own ? rule.taken(p.shape(i)) : -1;
    int const count = p.segment_of(i).operands;
    for (int index = 0; index < count; ++index) {
      operand const x = p.operand_of(i, index);
      if (x.where != space::value || index == taken) continue;
      if (joined && rule.is_optional(p.shape(i), index)) continue;
      if (joined && i >= own && recomputes(rule, p, c, x)) continue;
      if (int const v = r.local(x.index); v >= 0) in_memory[v] = true;
    }
  }
}

/// The kernel of a chain. has_place(operand): whether the operand has an address;
/// is_for_backward(operand): whether only backward reads the operand from memory.
///
/// needs: c.count <= chain_kernel::most
template <class Rule, class HasPlace, class IsForBackward>
constexpr chain_kernel kernel_of(Rule const& rule, unplaced_program const& p, launch_chain const& c,
                                 HasPlace has_place, IsForBackward is_for_backward) {
  chain_kernel k;
  k.count = c.count;
  k.form = c.form;
  k.recomputed = c.recomputed;
  for (int i = 0; i < c.count; ++i) {
    k.groups[i] = p.group_of(c.first + i);
    int const at = c.first + i, handed = rule.handed(p.shape(at));
    if (handed >= 0 && !has_place(p.operand_of(at, handed))) k.dropped |= 1u << i;
    if (handed >= 0 && is_for_backward(p.operand_of(at, handed))) k.for_backward |= 1u << i;
    bool some = false, all = true;
    for (int index = 0; index < p.segment_of(at).operands; ++index) {
      if (index == handed || !rule.is_optional(p.shape(at), index)) continue;
      some = true;
      all = all && is_for_backward(p.operand_of(at, index));
    }
    if (some && all) k.for_backward |= 1u << (chain_kernel::most + i);
  }
  return k;
}

}  // namespace pp::detail
