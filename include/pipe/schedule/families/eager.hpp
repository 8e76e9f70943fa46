// SPDX-License-Identifier: BSL-1.0
//
// Eager 1F1B: 1F1B with twice the warm-up, so that a value has the time of a whole forward and
// backward to reach the next rank. Shorter hops are hidden, for twice the activations.
#pragma once

#include <pipe/schedule/families/one_f_one_b.hpp>

namespace pp {

/// 1F1B with twice the warm-up, which hides hops.
///
/// law:    equal times without hops: the bubble of 1F1B; the peak of rank i is min(M, 2(P-i)-1)
///         micro-batches
/// source: Zhuang et al., On Optimizing the Communication of Model Parallelism (Alpa), 2023:
///         eager-1F1B
///
/// P = 4, M = 6, equal times; 0 1 2: F of a micro-batch, aa bb cc: its backward:
///   rank 0  012345....aa.bb.cc.dd.ee.ff
///   rank 1  .01234..aa5bb.cc.dd.ee.ff..
///   rank 2  ..012.aa3bb4cc5dd.ee.ff....
///   rank 3  ...0aa1bb2cc3dd4ee5ff......
struct EagerOneFOneB {
  static constexpr char const* name = "eager-1f1b";
  static constexpr schedules::placement where = schedules::placement::straight;
  static constexpr int chunks_per_rank = 1;
  static constexpr bool splits_backward = false;
  static constexpr bool trains = true;
  static constexpr bool replicates = true;

  template <schedules::pipeline_problem Problem, detail::action_table Table>
  static constexpr void fill(Problem const& problem, Table& table) {
    detail::alternate(problem, table, 2);
  }
};

}  // namespace pp
