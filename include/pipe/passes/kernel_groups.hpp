// SPDX-License-Identifier: BSL-1.0
//
// The distinct kernel groups of all lists of ops in one numbering.
#pragma once

#include <initializer_list>

#include <pipe/passes/fuse.hpp>
#include <pipe/passes/op_list.hpp>

namespace pp::detail {

/// The lists of ops, the number of reads of their values, and the segments into which the ops were
/// fused.
struct kernel_lists {
  ops_by_list ops;
  /// The counts by which the list was fused: describe() reads the same counts, as they decide what
  /// a group stores.
  per_op_list<int const*> uses;  // by value
  per_op_list<fused_view> fused;
  bool const* read_once = nullptr;  // by value, see joins_product()

  /// The description of segment i of a list, with its operands.
  constexpr described_group describe(op_list l, int i) const {
    segment const& s = fused[l].segments.items[i];
    described_group d;
    d.shape = describe_group(ops[l].items, s.begin, s.end, uses[l], read_once, d.operands.items);
    d.operands.count = std::size_t(d.shape.operands);
    return d;
  }
};

/// One numbering of the groups of all lists. A recomputed group that equals a forward group has the
/// number of the forward group, so that it is not compiled twice.
struct group_numbers {
  per_op_list<int>
      first;  // the number of each list's first group; of `recompute`: of its first new group
  int const* recomputed = nullptr;  // the number, by distinct group of the recomputed ops
  int count = 0;

  /// The number, among all lists, of distinct group `group` of list l.
  constexpr int number(op_list l, int group) const {
    return l == op_list::recompute ? recomputed[group] : first[l] + group;
  }
};

/// Numbers the groups of all lists.
///
/// shape: recomputed[distinct groups of the recomputed ops]
/// law:   the groups of forward, B and W have the first numbers, in this order; a recomputed group
///        that no forward group equals has a number after them
/// cost:  recomputed groups times forward groups
constexpr group_numbers number_groups(kernel_lists const& k, int* recomputed) {
  group_numbers n;
  for (op_list l : {op_list::forward, op_list::input_gradients, op_list::weight_gradients}) {
    n.first[l] = n.count;
    n.count += k.fused[l].distinct.count;
  }
  n.first[op_list::recompute] = n.count;
  // Only forward groups are compared: a recomputed op is a copy of a forward op.
  view<int> const distinct = k.fused[op_list::recompute].distinct;
  int const forward_groups = k.fused[op_list::forward].distinct.count;
  for (int i = 0; i < distinct.count; ++i) {
    group const mine = k.describe(op_list::recompute, distinct[i]).shape;
    int same = 0;
    while (same < forward_groups &&
           !(k.describe(op_list::forward, k.fused[op_list::forward].distinct[same]).shape == mine))
      ++same;
    recomputed[i] = same < forward_groups ? same : n.count++;
  }
  return n;
}

/// Describes every group by its number.
///
/// shape: -> shapes[numbers.count]
/// law:   a number that a forward and a recomputed group share gets the same description twice
constexpr void describe_groups(kernel_lists const& k, group_numbers const& numbers, group* shapes) {
  for (op_list l : every_op_list) {
    view<int> const distinct = k.fused[l].distinct;
    for (int i = 0; i < distinct.count; ++i)
      shapes[numbers.number(l, i)] = k.describe(l, distinct[i]).shape;
  }
}

/// The operands that a group writes, as a bit mask.
///
/// law: bit k is operand k; max_operands is below the 32 bits of the mask
constexpr unsigned operands_written(group const& g) {
  unsigned operands = 0;
  for_each_written(g, [&](int index) {
    if (index >= 0) operands |= 1u << index;
  });
  return operands;
}

}  // namespace pp::detail
