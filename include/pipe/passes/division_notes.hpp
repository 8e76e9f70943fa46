// SPDX-License-Identifier: BSL-1.0
//
// Notes of a graph before it is divided: the readers of each value, the runs of columns into which
// they cut it, and the products that are terms of a low-rank pair.
#pragma once

#include <pipe/passes/division.hpp>

namespace pp::detail {

/// Base of the walk: the notes of values and ops.
class division_notes {
 public:
  constexpr division_notes(graph_view const& g, int planes, division_scratch scratch)
      : g_(g), planes_(planes), values_(scratch.values), ops_(scratch.ops) {}

 protected:
  /// Fills the notes: makers and readers by a pass forward, wanted runs by a pass backward.
  constexpr void look_ahead() {
    for (int i = 0; i < g_.ops.count; ++i) {
      op const& o = g_.ops.items[i];
      for (operand const& y : o.out)
        if (y.where == space::value) values_[y.index].maker = i;
      for (int k = 0; k < o.ins; ++k)
        if (o.in[k].where == space::value) note_reader(values_[o.in[k].index], o.unit);
    }
    for (int i = g_.ops.count - 1; i >= 0; --i) look_at(g_.ops.items[i]);
    for (int i = 0; i < g_.ops.count; ++i)
      if (g_.ops.items[i].kind == op_kind::add) look_for_low_rank(g_.ops.items[i]);
  }

 private:
  constexpr void note_reader(value_note& v, int unit) {
    ++v.readers;
    int const made_in = g_.ops.items[v.maker].unit;
    if (made_in == unit) return;
    for (repetition const& r : g_.repetitions)
      if (int const copy = r.copy_with(made_in); copy >= 0 && copy != r.copy_with(unit))
        v.crosses = true;
  }
  /// Notes the runs into which o cuts its operands. What is read in another copy of a Repeat has
  /// one division for all copies, by any reader.
  constexpr void look_at(op const& o) {
    value_note& y = values_[o.out[0].index];
    if (y.crosses) {
      y.wanted = blocks{};
      y.is_padded = false;
    }
    if (o.kind == op_kind::attention) {
      attention_attributes const of = o.attributes.attention();
      int const size = o.columns / of.heads, q = o.columns, k = of.kv_heads * size;
      if (of.heads % planes_ != 0 || of.kv_heads % planes_ != 0) return;
      want(o.in[0], of.is_fused() ? blocks{1, q, k, k} : blocks{1, q});
      want(o.in[1], blocks{1, k, k});
    } else if (o.kind == op_kind::gate) {
      want(o.in[0], blocks{1, o.columns, o.columns});
    } else if (o.kind == op_kind::slice) {
      int const first = o.attributes.slice().first;
      if (first > 0) want(o.in[0], blocks{1, first, o.attributes.slice().columns - first});
    } else if (o.kind == op_kind::concat) {
      want_sides(o, y.wanted);
    } else if (is_pointwise(o.kind) || o.kind == op_kind::batch_norm) {
      int const main_operands = o.kind == op_kind::add || o.kind == op_kind::multiply ? 2 : 1;
      bool const keeps_padding =
          o.kind == op_kind::bias || o.kind == op_kind::map || o.kind == op_kind::add;
      for (int k = 0; k < main_operands; ++k) {
        want(o.in[k], y.wanted);
        if (y.is_padded && keeps_padding) pad(o.in[k]);
      }
    } else if (o.kind == op_kind::cross_entropy) {
      pad(o.in[0]);
    }
  }
  constexpr void want(operand x, blocks const& of) {
    if (x.where == space::value && of.exist()) values_[x.index].wanted = of;
  }
  constexpr void pad(operand x) {
    if (x.where == space::value && values_[x.index].readers == 1) values_[x.index].is_padded = true;
  }
  /// Divides the runs that are wanted of a concatenation between its two operands.
  constexpr void want_sides(op const& o, blocks const& all) {
    if (!all.exist() || o.attributes.concat().left_is_parameter) return;
    blocks sides[2]{blocks{1, 0}, blocks{1, 0}};
    sides[0].runs = sides[1].runs = 0;
    for (int i = 0, end = 0; i < all.runs; ++i) {
      blocks& side = sides[end < o.attributes.concat().left ? 0 : 1];
      side.width[side.runs++] = all.width[i];
      end += all.width[i];
    }
    for (int k = 0; k < 2; ++k)
      if (sides[k].runs > 0 && sides[k].total() == shape_of_operand(o, k).columns)
        want(o.in[k], sides[k]);
  }
  /// The op that computes x; -1 if none does.
  constexpr int maker_of(operand x) const {
    return x.where == space::value ? values_[x.index].maker : -1;
  }
  constexpr bool is_product(int i) const {
    return i >= 0 && g_.ops.items[i].kind == op_kind::matmul;
  }
  /// y = base(x) + b(a(x)), perhaps with a map between a and b and a bias behind the base: see
  /// LoRA. `sum` is the op of the addition.
  constexpr void look_for_low_rank(op const& sum) {
    int const b = maker_of(sum.in[0]);
    int base = maker_of(sum.in[1]);
    if (!is_product(b) || base < 0) return;
    int a = maker_of(g_.ops.items[b].in[0]);
    if (a >= 0 && g_.ops.items[a].kind == op_kind::map) a = maker_of(g_.ops.items[a].in[0]);
    if (g_.ops.items[base].kind == op_kind::bias) base = maker_of(g_.ops.items[base].in[0]);
    if (!is_product(a) || !is_product(base) || base > a) return;
    if (!(g_.ops.items[a].in[0] == g_.ops.items[base].in[0])) return;
    if (values_[g_.ops.items[a].out[0].index].readers > 1) return;
    ops_[a] = {op_note::term::first, base, false};
    ops_[b] = {op_note::term::second, base, false};
  }

 protected:
  graph_view const g_;
  int const planes_;
  value_note* const values_;
  op_note* const ops_;
};

}  // namespace pp::detail
