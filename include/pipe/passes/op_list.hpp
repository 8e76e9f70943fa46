// SPDX-License-Identifier: BSL-1.0
//
// The lists of ops from which programs are made.
#pragma once

#include <pipe/base/view.hpp>
#include <pipe/graph/differentiate.hpp>

namespace pp::detail {

/// The lists of ops. `recompute`: forward ops that run a second time, before backward, under a
/// policy that recomputes.
enum class op_list : unsigned char { forward, input_gradients, weight_gradients, recompute };
inline constexpr int op_lists = 4;
inline constexpr op_list every_op_list[] = {op_list::forward, op_list::input_gradients,
                                            op_list::weight_gradients, op_list::recompute};

/// The place where the ops of list `recompute` run: nowhere if all values are kept; at the
/// beginning of the program that makes input gradients; or ahead of it, in a program of their own.
enum class recompute_place : unsigned char { nowhere, in_backward, ahead };

/// A T for each list of ops.
template <class T>
struct per_op_list {
  /// The items, in the order of the enumerators.
  T of[op_lists]{};
  constexpr T& operator[](op_list l) { return of[int(l)]; }
  constexpr T const& operator[](op_list l) const { return of[int(l)]; }
};

/// The ops of each list.
using ops_by_list = per_op_list<view<op>>;
/// The lists of a graph and of its gradients.
constexpr ops_by_list lists_of(graph_view const& g, gradient_view const& backward,
                               view<op> recomputed = view<op>{}) {
  return ops_by_list{{g.ops, backward.input_ops, backward.weight_ops, recomputed}};
}

/// The number of streams of random bits: one for each dropout.
constexpr int count_streams(view<op> ops) {
  int n = 0;
  for (int i = 0; i < ops.count; ++i) n += ops.items[i].kind == op_kind::dropout;
  return n;
}

}  // namespace pp::detail
