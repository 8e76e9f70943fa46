// SPDX-License-Identifier: BSL-1.0
//
// Chains of launches that a backend runs as one kernel. They are found before memory is planned,
// since a value that is made and read only within a chain needs no memory.
#pragma once

#include <pipe/passes/programs.hpp>

namespace pp::detail {

/// Launches [first, first + count) of a program as one launch. `form`: an index of the backend, the
/// way in which it runs the chain.
struct launch_chain {
  int first = 0, count = 1, form = 0;
  friend constexpr bool operator==(launch_chain const&, launch_chain const&) = default;
};

/// The kernel of a chain: the groups of its launches, and the launches whose result is not in
/// memory (bit k: launch k).
struct chain_kernel {
  static constexpr int most = 16;
  /// `form` as in launch_chain; a chain has at most `most` launches.
  int count = 0, form = 0;
  unsigned dropped = 0;
  int groups[most]{};
  friend constexpr bool operator==(chain_kernel const&, chain_kernel const&) = default;
};
/// The maximum number of operands of a launch, of one group or of a chain.
inline constexpr int most_operands = chain_kernel::most * group::max_slots;

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
  /// The operand in a slot of launch i; none for slot -1.
  constexpr operand operand_of(int i, int slot) const {
    return slot < 0 ? operand{} : fused[order[i].list].operands[segment_of(i).first + slot];
  }
};

/// The chain rule of a backend that has no chains. A backend with chains has a type with
///
///     static constexpr bool any = true;
///     static constexpr Rule rule;  // a value with
///       bool may_join(group const&, int samples) const;  // in some program
///       launch_chain longest(unplaced_program const&, int first) const;  // count 1: no chain
///       int taken(group const&) const;   // the slot that reads the result of the launch before
///       int handed(group const&) const;  // the slot whose value the next launch reads, or -1
struct no_chains {
  static constexpr bool any = false;
};

/// Finds the chains of a program: from left to right, the longest chain at each launch.
///
/// may_join: by number of the group, what the rule says of it
/// alone:    by number of the group, set where a launch of it is in no chain
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

/// Marks the values that a program needs in memory: those that some launch reads or writes other
/// than from one launch of a chain to the next.
///
/// shape: -> in_memory[values of the stage], initially false
template <class Rule>
constexpr void note_in_memory(Rule const& rule, unplaced_program const& p,
                              view<launch_chain> chains, stage_range const& r, bool* in_memory) {
  chain_walk walk{chains};
  for (int i = 0; i < p.size(); ++i) {
    bool const joined = walk.meets(i);
    // The first launch of a chain reads from memory, the others what the launch before hands them.
    int const taken = joined && i > chains[walk.next].first ? rule.taken(p.shape(i)) : -1,
              handed = joined ? rule.handed(p.shape(i)) : -1;
    int const count = p.segment_of(i).operands;
    for (int slot = 0; slot < count; ++slot) {
      operand const x = p.operand_of(i, slot);
      if (x.where != space::value || slot == taken || slot == handed) continue;
      if (int const v = r.local(x.index); v >= 0) in_memory[v] = true;
    }
  }
}

/// The kernel of a chain. has_place(operand): whether the operand has an address.
///
/// needs: c.count <= chain_kernel::most
template <class Rule, class HasPlace>
constexpr chain_kernel kernel_of(Rule const& rule, unplaced_program const& p, launch_chain const& c,
                                 HasPlace has_place) {
  chain_kernel k;
  k.count = c.count;
  k.form = c.form;
  for (int i = 0; i < c.count; ++i) {
    k.groups[i] = p.group_of(c.first + i);
    int const handed = rule.handed(p.shape(c.first + i));
    if (handed >= 0 && !has_place(p.operand_of(c.first + i, handed))) k.dropped |= 1u << i;
  }
  return k;
}

}  // namespace pp::detail
