// SPDX-License-Identifier: BSL-1.0
//
// What forward keeps for backward, and what backward makes again. A dropped value is computed a
// second time from the values that were kept, by the same ops, just before backward runs: the bits
// are the same, memory is exchanged for time. Source: Chen et al., "Training deep nets with
// sublinear memory cost", 2016; per stage: Huang et al., GPipe, 2019.
#pragma once

#include <concepts>

#include <pipe/base/list.hpp>
#include <pipe/graph/differentiate.hpp>

namespace pp {

/// What a policy says: whether the results of a kind of op are dropped, and whether the last
/// micro-batch keeps everything.
template <class P>
concept recompute_policy = requires(op_kind kind) {
  { P::drops(kind) } -> std::convertible_to<bool>;
  { P::keeps_last } -> std::convertible_to<bool>;
  { P::recomputes } -> std::convertible_to<bool>;
};

/// Which forward ops run again, and which forward values are not kept from the first time.
template <int Ops, int Values>
struct recompute_plan {
  bool runs[Ops + 1]{};
  bool dropped[Values + 1]{};
  int ops = 0;
};

/// law: every value that backward reads is kept, or dropped and made again; what is made again
///      reads only what is kept, what other stages handed on, and what was made again before it
/// law: what forward has written is never written again: an op that runs again drops all of its
///      results, read or not, so that it has other places for them. The next stage may still be
///      reading the first ones.
template <class Policy, graph_size Forward, class Backward, class StageOf>
constexpr recompute_plan<Forward.ops, Forward.values> plan_recompute(graph<Forward> const& g,
                                                                     Backward const& backward,
                                                                     StageOf const& stage_of) {
  recompute_plan<Forward.ops, Forward.values> plan;
  if constexpr (!Policy::recomputes) return plan;
  bool read[Forward.values + 1]{};
  auto const note = [&](op const* ops, int n) {
    for (int i = 0; i < n; ++i)
      for (operand const& x : ops[i].in)
        if (x.where == space::value && x.index < Forward.values)
          read[x.index] =
              read[x.index] || stage_of(g.values[x.index].unit) == stage_of(ops[i].unit);
  };
  note(backward.input_ops, Backward::size.input_ops);
  note(backward.weight_ops, Backward::size.weight_ops);
  read[g.loss().out[0].index] = true;  // the gradient of the loss, which forward makes
  for (int i = Forward.ops - 1; i >= 0; --i) {
    op const& o = g.ops[i];
    for (operand const& out : o.out)
      if (out.where == space::value)
        plan.runs[i] =
            plan.runs[i] || plan.dropped[out.index] || (read[out.index] && Policy::drops(o.kind));
    if (!plan.runs[i]) continue;
    ++plan.ops;
    for (operand const& out : o.out)
      if (out.where == space::value) plan.dropped[out.index] = true;
    for (operand const& x : o.in)  // what it reads must be there, or be made again too
      if (x.where == space::value && stage_of(g.values[x.index].unit) == stage_of(o.unit) &&
          !read[x.index])
        plan.dropped[x.index] = true;
  }
  return plan;
}

/// Those ops, in the order of the graph.
template <int Count, class Plan, graph_size Forward>
constexpr list<op, Count> ops_again(graph<Forward> const& g, Plan const& plan) {
  list<op, Count> again;
  int n = 0;
  for (int i = 0; i < Forward.ops; ++i)
    if (plan.runs[i]) again[n++] = g.ops[i];
  return again;
}

}  // namespace pp
