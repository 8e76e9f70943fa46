// SPDX-License-Identifier: BSL-1.0
//
// 1F1B: each rank runs enough forwards to fill the pipeline below it, then alternates one forward
// and one backward. As fast as GPipe, but the activations in flight are bounded by the number of
// ranks instead of micro-batches.
#pragma once

#include <pipe/schedule/policy.hpp>

namespace pp {

namespace detail {

/// The actions of every rank: a warm-up of forwards, then forward and backward in turn while there
/// are forwards, then the remaining backwards. The warm-up has `times` the number of later ranks
/// divided by the ranks of the stage.
///
/// source: Narayanan et al., PipeDream, 2019, section 3.2: 1F1B-RR, for stages with replicas
template <pipeline_problem Problem, action_table Table>
constexpr void alternate(Problem const& problem, Table& table, int times) {
  using enum action_kind;
  int const m = problem.micro_batches;
  for (int chunk = 0; chunk < problem.chunks; ++chunk) {
    int const first = rank_of(table.where, problem.ranks, chunk, 0),
              step = replicas(table.where, chunk), ahead = (problem.ranks - 1 - first) / step;
    for (int rank = first; rank < first + step; ++rank) {
      int next = rank - first;
      for (int i = 0; next < m && i < times * ahead; ++i, next += step)
        table.push(rank, {forward, chunk, next});
      for (int mb = rank - first; mb < m; mb += step) {
        if (next < m) table.push(rank, {forward, chunk, next}), next += step;
        table.push(rank, {backward, chunk, mb});
      }
    }
  }
}

}  // namespace detail

/// One forward, one backward (default): 1F1B with a flush, also PipeDream-Flush and DAPPLE.
///
/// law:    with equal times the bubble is (P-1)/(M+P-1); the peak of rank i is min(M, P-i)
///         micro-batches
/// source: Narayanan et al., PipeDream-2BW (PipeDream-Flush), 2021; Fan et al., DAPPLE, 2021
///
/// P = 4, M = 6, equal times; 0 1 2: F of a micro-batch, aa bb cc: its backward:
///   rank 0  0123......aa4bb5cc.dd.ee.ff
///   rank 1  .012....aa3bb4cc5dd.ee.ff..
///   rank 2  ..01..aa2bb3cc4dd5ee.ff....
///   rank 3  ...0aa1bb2cc3dd4ee5ff......
struct OneFOneB {
  static constexpr char const* name = "1f1b";
  static constexpr schedules::placement where = schedules::placement::straight;
  static constexpr int chunks_per_rank = 1;
  static constexpr bool splits_backward = false;
  static constexpr bool trains = true;
  static constexpr bool replicates = true;

  template <schedules::pipeline_problem Problem, detail::action_table Table>
  static constexpr void fill(Problem const& problem, Table& table) {
    detail::alternate(problem, table, 1);
  }
};

}  // namespace pp
