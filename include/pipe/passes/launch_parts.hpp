// SPDX-License-Identifier: BSL-1.0
//
// Parts of launches: the work of a launch for each layer. Fusion joins ops of neighbouring layers,
// and chains join whole launches: the time of such a kernel is measured where it runs, and shared
// between the layers in proportion to their parts.
#pragma once

#include <cstddef>
#include <vector>

#include <pipe/graph/cost.hpp>
#include <pipe/passes/chains.hpp>
#include <pipe/passes/kernel_groups.hpp>

namespace pp::detail {

/// The part of a launch that is for one layer, of one list of ops. work: as estimated_time, > 0.
struct launch_part {
  int layer = 0;
  op_list list = op_list::forward;
  long work = 0;
  friend constexpr bool operator==(launch_part const&, launch_part const&) = default;
};

/// The work of op i of a launch with ops [begin, end), as estimated_time. An elementwise op moves
/// its operands and its result, but not a value that the launch hands over in registers: what the
/// op before or after it moves would be moved without it as well.
///
/// uses: reads by value, see kernel_lists::uses
constexpr long work_in_launch(view<op> ops, int begin, int end, int i, int const* uses) {
  op const& o = ops[i];
  cost c = cost_of(o);
  if (is_pointwise(o.kind)) {
    int moved = 1;
    for (int k = 0; k < o.ins; ++k)
      moved += o.in[k].where == space::value || o.in[k].where == space::input;
    c.bytes = 4L * moved * o.rows * o.columns;
  }
  // The value that op `from` hands to the next op is neither read nor, without another reader,
  // written. The elementwise one of the two is the one that costs less by it.
  auto const take = [&](int from) {
    if (from < begin || from + 1 >= end) return;
    op const &writer = ops[from], &reader = ops[from + 1];
    if (writer.out[0].where != space::value || !(reader.in[0] == writer.out[0])) return;
    if (i != (is_pointwise(reader.kind) ? from + 1 : from)) return;
    c.bytes -= (uses[writer.out[0].index] == 1 ? 8L : 4L) * writer.rows * writer.columns;
  };
  take(i - 1);
  take(i);
  if (c.bytes < 0) c.bytes = 0;
  long const work = estimated_time(c);
  return work > 0 ? work : 1;
}

/// Adds the ops of a segment to the parts of a launch, as ops of list `counted`.
inline void add_parts(kernel_lists const& kernels, scheduled_segment const& from, op_list counted,
                      std::vector<launch_part>& parts) {
  view<op> const& ops = kernels.ops[from.list];
  segment const& s = kernels.fused[from.list].segments[from.index];
  for (int o = s.begin; o < s.end; ++o) {
    std::size_t k = 0;
    while (k < parts.size() && (parts[k].layer != ops[o].unit || parts[k].list != counted)) ++k;
    if (k == parts.size()) parts.push_back({ops[o].unit, counted, 0});
    parts[k].work += work_in_launch(ops, s.begin, s.end, o, kernels.uses[from.list]);
  }
}

/// The parts of each launch of program p, whose segments are `order`. A chain is one launch. What a
/// chain of backward computes again of forward counts as B of its layer. Chain number `loss_chain`
/// computes the loss and what leads to it, which no training step runs before: it counts as F.
///
/// law: every op of the program is in one part of one launch; a launch's parts differ in layer or
///      list
inline std::vector<std::vector<launch_part>> list_launch_parts(kernel_lists const& kernels,
                                                               program p,
                                                               view<scheduled_segment> order,
                                                               view<launch_chain> chains,
                                                               int loss_chain = -1) {
  std::vector<std::vector<launch_part>> launches;
  chain_walk walk{chains};
  for (int i = 0; i < order.count;) {
    bool const joined = walk.meets(i), has_loss = joined && walk.next == loss_chain;
    int const end = i + (joined ? chains[walk.next].count : 1);
    std::vector<launch_part>& parts = launches.emplace_back();
    for (; i < end; ++i) {
      op_list const from = order[i].list;
      bool const again = from == op_list::forward && p != program::forward && !has_loss;
      add_parts(kernels, order[i], again ? op_list::input_gradients : from, parts);
    }
  }
  return launches;
}

/// Shares the time of a launch between its parts: give(part, time) for each of them.
///
/// law: the times add up to `time`; each differs from its proportion of it by less than 2
template <class Give>
void share_time(long time, std::vector<launch_part> const& parts, Give const& give) {
  double all = 0, work = 0;
  for (launch_part const& p : parts) all += double(p.work);
  long before = 0;
  for (std::size_t k = 0; k < parts.size(); ++k) {
    work += double(parts[k].work);
    long const until = k + 1 < parts.size() ? long(double(time) * (work / all)) : time;
    give(parts[k], until - before);
    before = until;
  }
}

}  // namespace pp::detail
