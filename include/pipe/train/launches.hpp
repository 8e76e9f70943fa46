// SPDX-License-Identifier: BSL-1.0
//
// What each launch of a pipeline computes, for those who look on: which layer it belongs to and what it writes. Made at run
// time, when somebody asks: to find the first number that is not finite, or to measure the layers.
#pragma once

#include <utility>
#include <vector>

#include <pipe/passes/group.hpp>
#include <pipe/passes/memory.hpp>

namespace pp {

/// An operand that a launch writes: its slot, and how many numbers of a micro-batch.
struct written {
  int slot = 0;
  long elements = 0;
};
struct launch_facts {
  int layer = 0;       ///< top-level, from 0; of several that were fused, the first
  bool again = false;  ///< makes values again that forward made and did not keep
  std::vector<written> writes;
};

/// All launches of a compiled pipeline P.
template <class P>
class launch_book {
 public:
  launch_book() {
    [&]<int... S>(std::integer_sequence<int, S...>) {
      (add_stage<S>(), ...);
    }(std::make_integer_sequence<int, P::stages>{});
  }
  launch_facts const& at(int chunk, bool drops, program which, int launch) const {
    return facts_[place(chunk, drops, which)][std::size_t(launch)];
  }

 private:
  static std::size_t place(int chunk, bool drops, program which) {
    return std::size_t((chunk * 2 + int(drops)) * program_count + int(which));
  }
  template <int S>
  void add_stage() {
    if constexpr (P::some_keep) add_set<S, false>();
    if constexpr (P::some_drop) add_set<S, true>();
  }
  template <int S, bool Drops>
  void add_set() {
    using programs = typename P::passes::template programs<S, Drops>;
    add_program<programs, S, program::forward>();
    if constexpr (P::passes::splits_backward) {
      add_program<programs, S, program::backward_input>();
      add_program<programs, S, program::backward_weight>();
    } else {
      add_program<programs, S, program::backward>();
    }
  }
  template <class Programs, int S, program Which>
  void add_program() {
    for (scheduled_segment const& s : Programs::template order<Which>) {
      launch_facts f;
      f.layer = P::passes::ops(s.list)[P::passes::segment_at(s.list, s.index).begin].unit;
      f.again = s.list == 3;
      described_group const d = P::passes::describe(s.list, s.index);
      auto const add = [&](int slot) {
        if (slot >= 0) f.writes.push_back({slot, elements(d.operands[slot])});
      };
      for (signed char const slot : d.shape.out) add(slot);
      for (auto const* chain : {&d.shape.prologue, &d.shape.epilogue})
        for (step const& one : *chain) add(one.store);
      facts_[place(S, Programs::drops, Which)].push_back(f);
    }
  }
  static long elements(operand const& x) {
    if (x.where == space::value) return P::passes::value_elements(x.index) * P::samples;
    return P::passes::forward.parameters[x.index].elements();
  }

  std::vector<launch_facts> facts_[std::size_t(P::stages) * 2 * program_count];
};

}  // namespace pp
