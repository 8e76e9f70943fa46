// SPDX-License-Identifier: BSL-1.0
//
// Differentiation of reversible blocks: backward remakes the inputs of a block from its outputs,
// between the ops of gradients, so that a remade value lives only until the gradients that read it.
// (A recompute policy runs all forward ops before backward, and its scratch grows with the depth of
// a stage.)
//
// Where a sequence of blocks is cut, the remade value crosses the cut backwards, beside its
// gradient: the value that the earlier stage has stored differs by rounding, and bits would depend
// on the cut.
#pragma once

#include <pipe/graph/copies.hpp>
#include <pipe/graph/gradients.hpp>

namespace pp::detail {

/// Base of the differentiator, whose functions and lists it uses.
///
/// needs: Differentiator is derived from reversal<Differentiator>
template <class Differentiator>
class reversal {
 public:
  /// Differentiates a Reversible, whose last op is y = (y1, y2): remakes x2 = y2 - G(y1) before the
  /// gradients of G, then x1 = y1 - F(x2) before the gradients of F; these gradients read the
  /// remade values. Returns the unit's first op.
  constexpr int reverse(int unit, int last) {
    for (; is_loss(self().g_.ops.items[last].kind); --last)
      self().rule(copy_of(self().g_.ops.items[last]));
    int const first = self().g_.first_op(unit), middle = self().g_.units.items[unit].middle;
    op const second_half = self().g_.ops.items[first], first_half = self().g_.ops.items[first + 1],
             y1 = self().g_.ops.items[middle], y2 = self().g_.ops.items[last - 1],
             y = self().g_.ops.items[last];
    self().remakes_ = true;
    self().remade_[y1.out[0].index] = half(y, first_half);
    self().remade_[y2.out[0].index] = half(y, second_half);
    run_again(middle + 1, last - 1, last);
    self().remade_[second_half.out[0].index] = difference(y2, last);
    for (int i = last; i > middle; --i) self().rule(copy_of(self().g_.ops.items[i]));
    run_again(first + 2, middle, middle + 1);
    self().remade_[first_half.out[0].index] = difference(y1, middle + 1);
    remake_input(first_half, second_half, middle + 1);
    for (int i = middle; i >= first; --i) self().rule(copy_of(self().g_.ops.items[i]));
    return first;
  }

 private:
  /// The slice of y, as y was stored or remade, at the columns that slice `of` takes of x.
  constexpr operand half(op const& y, op const& of) {
    op d = self().backward(op_kind::slice, y, {y.out[0]});
    d.attributes = of.attributes;
    d.columns = of.columns;
    return added(d);
  }
  /// Adds forward ops [begin, end) once more. `origin`: the op among whose gradients they run.
  constexpr void run_again(int begin, int end, int origin) {
    for (int i = begin; i < end; ++i) {
      op const o = copy_of(self().g_.ops.items[i]);
      op d = self().backward(o.kind, o, {o.in[0], o.in[1], o.in[2], o.in[3], o.in[4], o.in[5]});
      d.ins = o.ins;
      d.origin = origin;
      for (int k = 0; k < op::max_out; ++k)
        if (o.out[k].where == space::value) {
          d.out[k] = self().new_value(self().g_.values.items[o.out[k].index].elements, d.unit);
          self().remade_[o.out[k].index] = d.out[k];
        }
      self().out_.input_ops.push_back(self().checked(d));
    }
  }
  /// x of the sum o, y = f + x, from the remade y and f.
  constexpr operand difference(op const& o, int origin) {
    op negative = self().backward(op_kind::map, o, {o.in[0]});
    negative.attributes = map_attributes{};
    negative.origin = origin;
    op d = self().backward(op_kind::add, o, {added(negative), o.out[0]});
    d.origin = origin;
    return added(d);
  }
  /// Adds the op that joins the remade halves of a Reversible's input, and its crossing, if the
  /// previous unit is a Reversible, which reads this value as its output.
  constexpr void remake_input(op const& first_half, op const& second_half, int origin) {
    operand const x = first_half.in[0];
    if (x.where != space::value) return;
    int const from = self().g_.values.items[x.index].unit;
    if (self().g_.units.items[from].middle < 0 || from == first_half.unit) return;
    op d = self().backward(op_kind::concat, first_half, {first_half.out[0], second_half.out[0]});
    d.attributes = concat_attributes{first_half.columns};
    d.columns = first_half.columns + second_half.columns;
    d.origin = origin;
    self().remade_[x.index] = added(d);
    self().out_.crossings.push_back(
        crossing{x.index, first_half.unit, self().remade_[x.index], true});
  }
  /// Adds op d to the input gradients, and returns its result.
  constexpr operand added(op d) {
    d.out[0] = self().new_value(long(d.rows) * d.columns, d.unit);
    self().out_.input_ops.push_back(self().checked(d));
    return d.out[0];
  }

  constexpr Differentiator& self() { return static_cast<Differentiator&>(*this); }
};

}  // namespace pp::detail
