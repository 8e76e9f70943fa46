// SPDX-License-Identifier: BSL-1.0
//
// The distinct kernels of the chains in a pipeline's programs. Their launch numbers follow those of
// the groups.
#pragma once

#include <utility>

#include <pipe/base/list.hpp>
#include <pipe/passes/chains.hpp>

namespace pp::detail {

/// Index of x in items, or items.count.
constexpr int position_of(chain_kernel const& x, view<chain_kernel> items) {
  int i = 0;
  while (i < items.count && !(items[i] == x)) ++i;
  return i;
}

/// The distinct chain kernels of Work, a pipeline_schedule, in order of first use.
template <class Work>
class chain_table {
  /// Calls visit.operator()<Programs>() for every stage, twice if micro-batches differ in what they
  /// keep.
  template <class Visit>
  static constexpr void each_stage(Visit visit) {
    [&]<int... S>(std::integer_sequence<int, S...>) {
      if constexpr (Work::some_keep)
        (visit.template operator()<typename Work::template programs<S, false>>(), ...);
      if constexpr (Work::some_drop)
        (visit.template operator()<typename Work::template programs<S, true>>(), ...);
    }(std::make_integer_sequence<int, Work::stages>{});
  }
  /// Calls visit.operator()<Programs, P>() for every program of every stage.
  template <class Visit>
  static constexpr void each_program(Visit visit) {
    each_stage([&]<class Programs>() { each_of<Programs>(visit); });
  }
  /// The programs of a stage are those that its schedule runs: whole backward passes, or B and W.
  /// Calls visit for the programs of one stage: forward, R if it runs ahead, backward and, if
  /// backward is split, W.
  template <class Programs, class Visit>
  static constexpr void each_of(Visit visit) {
    visit.template operator()<Programs, program::forward>();
    if constexpr (Programs::recomputes_ahead)
      visit.template operator()<Programs, program::recompute>();
    visit.template operator()<Programs, backward_of(Programs::splits_backward)>();
    if constexpr (Programs::splits_backward)
      visit.template operator()<Programs, program::backward_weight>();
  }

  static constexpr int most = [](auto...) {
    int n = 0;
    each_program([&]<class Programs, program P>() { n += Programs::template chains<P>.count; });
    return n;
  }();
  /// The distinct kernels, of which `count` are used.
  struct memory {
    list<chain_kernel, most> items;
    int count = 0;
  };
  static constexpr memory distinct = [](auto...) {
    memory m;
    sink<chain_kernel> to{m.items.items};
    each_program([&]<class Programs, program P>() {
      for (int c = 0; c < Programs::template chains<P>.count; ++c)
        if (chain_kernel const& k = Programs::template chain_kernels<P>[c];
            position_of(k, to.filled()) == to.count)
          to.push_back(k);
    });
    m.count = to.count;
    return m;
  }();

 public:
  static constexpr view<chain_kernel> kernels{distinct.items.items, distinct.count};
  /// By kernel group, whether some launch of it is in no chain: only these need kernels of their
  /// own. What only chains run is not compiled a second time.
  static constexpr auto alone = [](auto...) {
    list<bool, Work::passes::groups> is;
    each_stage([&]<class Programs>() {
      for (int g = 0; g < is.size(); ++g) is[g] = is[g] || Programs::plain_chains.alone[g];
    });
    return is;
  }();
};

/// A backend's chain rule with launch numbers, for the programs of Work.
template <class Rule, class Work>
struct numbered_chains : Rule {
  /// The launch number of a chain kernel: after those of all kernel groups.
  static constexpr int number(chain_kernel const& k) {
    return Work::passes::groups + position_of(k, chain_table<Work>::kernels);
  }
  static constexpr bool may_take_loss() { return Work::has_loss_in_backward(); }
};

}  // namespace pp::detail
