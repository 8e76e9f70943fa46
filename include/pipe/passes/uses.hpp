// SPDX-License-Identifier: BSL-1.0
//
// The number of reads of each value. A kernel group stores a value only if an op outside of the
// group reads it.
#pragma once

#include <pipe/passes/boundary.hpp>
#include <pipe/passes/op_list.hpp>

namespace pp::detail {

/// Adds the reads of each value by these ops to `uses`; returns the number of operands that the ops
/// read.
///
/// shape: uses[values]
constexpr int count_uses(view<op> ops, int* uses) {
  int read = 0;
  for (int i = 0; i < ops.count; ++i) {
    op const o = ops.items[i];
    read += o.ins;
    for (int k = 0; k < o.ins; ++k)
      if (o.in[k].where == space::value) ++uses[o.in[k].index];
  }
  return read;
}

/// The numbers of reads by value, initially 0: by all ops; by backward; by backward and
/// recomputation, not used where nothing is recomputed.
struct use_memory {
  int *by_all = nullptr, *by_backward = nullptr, *by_recompute = nullptr;
};

/// The numbers of reads that decide what the ops of each list store.
///
/// by_recompute: by_backward where nothing is recomputed
///
/// A value of forward counts all reads; a value of B or W the reads by backward and by the runtime,
/// which sends it; a value that is made again the reads by backward and by recomputed ops.
constexpr per_op_list<int const*> uses_by_list(int const* by_all, int const* by_backward,
                                               int const* by_recompute) {
  return {{by_all, by_backward, by_backward, by_recompute}};
}

/// Counts the reads of values by backward, in by_backward. Returns upper bounds of the numbers of
/// operands that the ops of B and of W read and write.
constexpr per_op_list<int> count_backward_uses(graph_view const& g, gradient_view const& backward,
                                               int* by_backward) {
  per_op_list<int> bound;
  bound[op_list::input_gradients] =
      count_uses(backward.input_ops, by_backward) + backward.values.count;
  bound[op_list::weight_gradients] =
      count_uses(backward.weight_ops, by_backward) + g.parameters.count;
  return bound;
}

/// Adds all other reads: by forward, by recomputation, and by the runtime, which sends the values
/// that cross a cut. Sets the bounds of the lists of forward and of recomputed ops.
///
/// needs:      by_all, and by_recompute if it is used, are copies of by_backward
/// repeated:   the recomputed ops, empty under a policy that stores everything
/// recomputed: by forward value; forward need not store a value that is recomputed, unless some
///             stages or micro-batches keep all values
constexpr void count_other_uses(graph_view const& g, view<op> repeated, view<handed_on> crossing,
                                bool const* recomputed, bool keeps_last, use_memory memory,
                                per_op_list<int>& bound) {
  int* const all = memory.by_all;
  if (repeated.count > 0) {
    bound[op_list::recompute] = count_uses(repeated, memory.by_recompute) + g.values.count;
    for (int v = 0; !keeps_last && v < g.values.count; ++v)
      if (recomputed[v]) all[v] = 0;
  }
  // The runtime sends a value that leaves its stage from the value's slot, so the value must be
  // stored.
  for (handed_on const& x : crossing) {
    ++all[x.what.index];
    ++memory.by_backward[x.what.index];
  }
  bound[op_list::forward] = count_uses(g.ops, all) + g.values.count;
}

}  // namespace pp::detail
