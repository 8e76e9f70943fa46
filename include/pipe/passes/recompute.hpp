// SPDX-License-Identifier: BSL-1.0
//
// Recomputation: the values that forward stores for backward, and those that backward computes
// again. A dropped value is computed a second time from stored values, by the same ops, just before
// backward runs: the bits are the same, memory is exchanged for time. Source: Chen et al.,
// "Training deep nets with sublinear memory cost", 2016; per stage: Huang et al., GPipe, 2019.
#pragma once

#include <initializer_list>

#include <pipe/graph/differentiate.hpp>
#include <pipe/passes/joined_ops.hpp>
#include <pipe/passes/recompute_policy.hpp>

namespace pp::detail {

/// A policy as a value.
struct recompute_rule {
  bool recomputes = false, keeps_last = false;
  kind_mask drops = 0;  // bit k: the results of ops of kind k are dropped
};
/// The rule of a policy, so that the passes are functions of values.
template <recompute_policy P>
constexpr recompute_rule rule_of() {
  recompute_rule r{P::recomputes, P::keeps_last, 0};
  if (P::recomputes)
    for (int k = 0; k < op_kinds; ++k) r.drops |= kind_mask(P::drops(op_kind(k))) << k;
  return r;
}

/// Whether a forward op runs again, by op, and whether a forward value is not stored, by value;
/// initially false.
struct recompute_plan {
  bool* runs = nullptr;
  bool* dropped = nullptr;
  int ops = 0;  // the number of ops that run again
};

/// Decides what is dropped and what runs again under a policy.
///
/// shape: read[values], initially false: working memory
/// law:   every value that backward reads is stored, or dropped and computed again; recomputation
///        reads only stored values, values from other stages, and recomputed values before it
/// law:   a value that forward has written is never overwritten, as the next stage may still be
///        reading it: an op that runs again drops all of its results, read or not, so that the new
///        results have other addresses
/// law:   an op that is indivisible from a product runs again together with the product (read_once:
///        see joins_product())
constexpr void plan_recompute(graph_view const& g, gradient_view const& backward,
                              recompute_rule rule, short const* stage_of_unit,
                              bool const* read_once, bool* read, recompute_plan& plan) {
  if (!rule.recomputes) return;
  // Only reads within a value's own stage count: another stage reads the value from a boundary.
  auto const stage_of_value = [&](int v) { return stage_of_unit[g.values[v].unit]; };
  for (view<op> const& ops : {backward.input_ops, backward.weight_ops})
    for (op const& o : ops)
      for (operand const& x : o.in)
        if (x.where == space::value && x.index < g.values.count)
          read[x.index] = read[x.index] || stage_of_value(x.index) == stage_of_unit[o.unit];
  read[g.loss().out[0].index] = true;  // the gradient of the loss, which forward makes
  // Backwards, because an op that runs again may make its inputs run again.
  for (int i = g.ops.count - 1; i >= 0; --i) {
    op const& o = g.ops[i];
    bool const drops = rule.drops >> int(o.kind) & 1;
    for (operand const& out : o.out)
      if (out.where == space::value)
        plan.runs[i] = plan.runs[i] || plan.dropped[out.index] || (read[out.index] && drops);
    // An indivisible pair runs again as a whole, or not at all: if the result of its second op is
    // needed, or if the value between the two ops is needed and not kept.
    bool const joins = joins_product(g.ops.items, i, read_once);
    if (joins) {
      int const x = o.in[0].index;
      bool const drops_product = rule.drops >> int(g.ops[i - 1].kind) & 1;
      plan.runs[i] = plan.runs[i] || plan.dropped[x] || (read[x] && drops_product);
    }
    if (!plan.runs[i]) continue;
    ++plan.ops;
    for (operand const& out : o.out)
      if (out.where == space::value) plan.dropped[out.index] = true;
    if (joins) plan.dropped[o.in[0].index] = true;
    for (operand const& x : o.in)  // its inputs must be stored, or computed again too
      if (x.where == space::value && stage_of_value(x.index) == stage_of_unit[o.unit] &&
          !read[x.index])
        plan.dropped[x.index] = true;
  }
}

/// Lists the ops that run again, in the order of the graph.
///
/// shape: -> to[plan.ops]
constexpr void list_recomputed(view<op> ops, bool const* runs, sink<op>& to) {
  for (int i = 0; i < ops.count; ++i)
    if (runs[i]) to.push_back(ops[i]);
}

}  // namespace pp::detail
