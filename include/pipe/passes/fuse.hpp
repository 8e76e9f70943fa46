// SPDX-License-Identifier: BSL-1.0
//
// Which ops run as one kernel. The rules, applied to each list of ops from left to right:
//
//   1. A pointwise op joins the epilogue of the group before it, if that group has just made its main operand.
//   2. A matmul, a norm or a softmax takes a chain of pointwise ops before it as its prologue, if the chain makes its main operand.
//   3. A bias gradient joins the weight gradient of the matmul that shares its operand.
//
// A group never crosses a cut of the model. A value inside a group is written only if somebody outside the group reads it.
#pragma once

#include <pipe/passes/group.hpp>

namespace pp {

/// How often each value is read, by all lists of ops and across cuts. A group stores what is read outside of it.
template <int Values>
struct use_counts {
  int of[Values + 1]{};
  constexpr void count(op const* ops, int n) {
    for (int i = 0; i < n; ++i)
      for (operand const& in : ops[i].in) add(in);
  }
  constexpr void add(operand x) {
    if (x.where == space::value) ++of[x.index];
  }
};

/// Anchors whose finished rows pass through an epilogue.
constexpr bool takes_epilogue(op_kind k) {
  return k == op_kind::lookup || k == op_kind::matmul || k == op_kind::norm || k == op_kind::softmax ||
         k == op_kind::gate || k == op_kind::matmul_input_gradient || k == op_kind::norm_gradient ||
         k == op_kind::softmax_gradient || k == op_kind::gate_gradient || is_pointwise(k);
}
constexpr bool takes_prologue(op_kind k) { return k == op_kind::matmul || k == op_kind::norm || k == op_kind::softmax; }

/// Whether op `next` may join the group of ops [begin, at), which ends just before it.
constexpr bool joins(op const* ops, int begin, int at, op const& next) {
  op const& last = ops[at - 1];
  if (at - begin >= group::max_steps) return false;
  if (last.kind == op_kind::bias_gradient)
    return at - begin == 1 && next.kind == op_kind::matmul_weight_gradient && next.in[1] == last.in[0];
  if (!(next.in[0] == last.out[0]) || next.in[0].where != space::value) return false;
  if (is_pointwise(next.kind)) {
    if (!takes_epilogue(last.kind) || next.rows != last.rows || next.columns != last.columns) return false;
    for (int i = begin; i < at; ++i)  // the second operand must be there before the group starts
      if (next.in[1].where == space::value && next.in[1] == ops[i].out[0]) return false;
    return true;
  }
  if (!takes_prologue(next.kind)) return false;
  for (int i = begin; i < at; ++i)
    if (!is_pointwise(ops[i].kind)) return false;
  int const width = next.kind == op_kind::matmul ? next.inner : next.columns;
  return next.rows == last.rows && width == last.columns;
}

/// Structure and operands of the group of ops [begin, end).
template <class Uses>
constexpr described_group describe_group(op const* ops, int begin, int end, Uses const& uses) {
  described_group d;
  int anchor = begin;
  while (anchor + 1 < end && (is_pointwise(ops[anchor].kind) || ops[anchor].kind == op_kind::bias_gradient)) ++anchor;
  bool const chain_only = is_pointwise(ops[anchor].kind);
  auto const slot = [&](operand x) -> signed char {
    if (x.where == space::none) return -1;
    d.operands.push_back(x);
    return static_cast<signed char>(d.operands.size() - 1);
  };
  // A result read once, by the next op of the group, never reaches memory.
  auto const stored = [&](int i) -> signed char {
    bool const inside = i + 1 < end && ops[i + 1].in[0] == ops[i].out[0] && uses.of[ops[i].out[0].index] == 1;
    return inside ? static_cast<signed char>(-1) : slot(ops[i].out[0]);
  };
  auto const add_step = [&](auto& chain, int i) {
    op const& o = ops[i];
    step s{o.kind, short(is_by_leaf(o.kind) ? o.leaf : 0), -1, -1};
    s.slot = slot(o.kind == op_kind::bias_gradient ? operand{} : o.in[1]);
    s.store = o.out[0].where == space::value ? stored(i) : slot(o.out[0]);
    chain.push_back(s);
  };
  op const& a = ops[chain_only ? begin : anchor];
  d.shape.anchor = chain_only ? op_kind::pointwise : a.kind;
  d.shape.rows = a.rows;
  d.shape.columns = a.columns;
  if (!chain_only) {
    if (has_formula(a.kind)) d.shape.leaf = a.leaf;
    d.shape.inner = a.inner;
    d.shape.groups = a.groups;
    d.shape.keys = a.keys;
    d.shape.form = a.form;
    d.shape.flag = a.flag;
    d.shape.epsilon = a.epsilon;
    d.shape.amount = a.amount;
  }
  d.shape.in[0] = slot(is_pointwise(ops[begin].kind) ? ops[begin].in[0] : a.in[0]);
  if (chain_only) {
    for (int i = begin; i < end; ++i) add_step(d.shape.epilogue, i);
  } else {
    for (int i = begin; i < anchor; ++i) add_step(d.shape.prologue, i);
    for (int k = 1; k < op::max_in; ++k) d.shape.in[k] = slot(a.in[k]);
    d.shape.out[0] = a.out[0].where == space::value ? stored(anchor) : slot(a.out[0]);
    for (int k = 1; k < op::max_out; ++k) d.shape.out[k] = slot(a.out[k]);
    for (int i = anchor + 1; i < end; ++i) add_step(d.shape.epilogue, i);
  }
  d.shape.slots = int(d.operands.size());
  return d;
}

/// A list of ops as a list of launches.
///
/// law: the segments cover [0, ops) in order; segments with the same group number have equal descriptions; `distinct[g]` is the
/// first segment of group g
template <int Ops>
struct fused {
  static_vector<segment, Ops + 1> segments;
  static_vector<int, Ops + 1> distinct;
};

/// A number that equal groups share and different ones almost never do; equality is checked all the same.
constexpr std::uint64_t hash_of(group const& g) {
  std::uint64_t h = 14695981039346656037u;
  auto const mix = [&](long v) { h = (h ^ std::uint64_t(v)) * 1099511628211u; };
  mix(long(g.anchor) + 64L * g.flag);
  mix(g.rows + (long(g.columns) << 24));
  mix(g.inner + (long(g.slots) << 32));
  for (step const& s : g.prologue) mix(long(s.kind) + 64L * (s.slot + 1 + 64L * (s.store + 1 + 64L * s.leaf)));
  mix(-1);
  for (step const& s : g.epilogue) mix(long(s.kind) + 64L * (s.slot + 1 + 64L * (s.store + 1 + 64L * s.leaf)));
  return h;
}

/// law: no segment holds ops of units on both sides of a cut
template <int Ops, class Uses, class StageOf>
constexpr fused<Ops> fuse(op const* ops, Uses const& uses, StageOf const& stage_of) {
  fused<Ops> f;
  std::uint64_t hashes[Ops + 1]{};
  static_vector<group, 32>
      known;  // the first distinct groups: most models have no more, and to describe one takes time
  auto const same = [&](int id, group const& g) {
    if (id < int(known.size())) return known[id] == g;
    segment const& s = f.segments[f.distinct[id]];
    return describe_group(ops, s.begin, s.end, uses).shape == g;
  };
  for (int begin = 0; begin < Ops;) {
    int end = begin + 1;
    while (end < Ops && stage_of(ops[end].unit) == stage_of(ops[begin].unit) && joins(ops, begin, end, ops[end])) ++end;
    group const g = describe_group(ops, begin, end, uses).shape;
    std::uint64_t const h = hash_of(g);
    int id = 0;
    while (id < int(f.distinct.size()) && !(hashes[id] == h && same(id, g))) ++id;
    if (id == int(f.distinct.size())) {
      hashes[id] = h;
      if (known.size() < known.capacity()) known.push_back(g);
      f.distinct.push_back(int(f.segments.size()));
    }
    f.segments.push_back(segment{begin, end, id, g.slots});
    begin = end;
  }
  return f;
}

}  // namespace pp
