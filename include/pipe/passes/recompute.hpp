// SPDX-License-Identifier: BSL-1.0
//
// Recomputation: the values that forward keeps for backward, and those that backward makes again. A
// dropped value is computed a second time from the values that were kept, by the same ops, just
// before backward runs: the bits are the same, memory is exchanged for time. Source: Chen et al.,
// "Training deep nets with sublinear memory cost", 2016; per stage: Huang et al., GPipe, 2019.
#pragma once

#include <cstdint>
#include <initializer_list>

#include <pipe/graph/differentiate.hpp>
#include <pipe/passes/recompute_policy.hpp>

namespace pp {

/// A policy as a value.
struct recompute_rule {
  bool recomputes = false, keeps_last = false;
  std::uint64_t drops = 0;  // bit k: the results of ops of kind k
};
template <recompute_policy P>
constexpr recompute_rule rule_of() {
  recompute_rule r{P::recomputes, P::keeps_last, 0};
  if (P::recomputes)
    for (int k = 0; k < op_kinds; ++k) r.drops |= std::uint64_t(P::drops(op_kind(k))) << k;
  return r;
}

/// Which forward ops run again, and which forward values are not kept from the first time: bools by
/// op and by value, false at first.
struct recompute_plan {
  bool* runs = nullptr;
  bool* dropped = nullptr;
  int ops = 0;  // that run again
};

/// shape: read[values], false at first, is memory that this uses for a while
/// law:   every value that backward reads is kept, or dropped and made again; what is made again
///        reads only what is kept, what other stages handed on, and what was made again before it
/// law:   what forward has written is never written again: an op that runs again drops all of its
///        results, read or not, so that it has other places for them. The next stage may still be
///        reading the first ones.
constexpr void plan_recompute(graph_view const& g, gradient_view const& backward,
                              recompute_rule rule, short const* stage_of_unit, bool* read,
                              recompute_plan& plan) {
  if (!rule.recomputes) return;
  auto const stage_of_value = [&](int v) { return stage_of_unit[g.values[v].unit]; };
  for (view<op> const& ops : {backward.input_ops, backward.weight_ops})
    for (op const& o : ops)
      for (operand const& x : o.in)
        if (x.where == space::value && x.index < g.values.count)
          read[x.index] = read[x.index] || stage_of_value(x.index) == stage_of_unit[o.unit];
  read[g.loss().out[0].index] = true;  // the gradient of the loss, which forward makes
  for (int i = g.ops.count - 1; i >= 0; --i) {
    op const& o = g.ops[i];
    bool const drops = rule.drops >> int(o.kind) & 1;
    for (operand const& out : o.out)
      if (out.where == space::value)
        plan.runs[i] = plan.runs[i] || plan.dropped[out.index] || (read[out.index] && drops);
    if (!plan.runs[i]) continue;
    ++plan.ops;
    for (operand const& out : o.out)
      if (out.where == space::value) plan.dropped[out.index] = true;
    for (operand const& x : o.in)  // what it reads must be there, or be made again too
      if (x.where == space::value && stage_of_value(x.index) == stage_of_unit[o.unit] &&
          !read[x.index])
        plan.dropped[x.index] = true;
  }
}

/// Those ops, in the order of the graph.
constexpr void list_again(view<op> ops, bool const* runs, sink<op>& again) {
  for (int i = 0; i < ops.count; ++i)
    if (runs[i]) again.push_back(ops[i]);
}

}  // namespace pp
