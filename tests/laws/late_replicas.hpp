// SPDX-License-Identifier: BSL-1.0
//
// A schedule for stages on several ranks: B and W apart, W one micro-batch of the rank later.
#pragma once

#include "laws/schedules.hpp"

namespace laws {

struct LateReplicas : one_chunk {
  static constexpr char const* name = "late_weights_rr";
  static constexpr bool splits_backward = true, replicates = true;

  template <class Problem, class Table>
  static constexpr void fill(Problem const& problem, Table& table) {
    using pp::schedules::action_kind;
    for (int chunk = 0; chunk < problem.chunks; ++chunk) {
      int const step = replicas(table.where, chunk), m = problem.micro_batches;
      for (int first = 0; first < step; ++first) {
        int const rank = rank_of(table.where, problem.ranks, chunk, first);
        for (int mb = first; mb < m; mb += step)
          table.push(rank, {action_kind::forward, chunk, mb});
        for (int mb = first; mb < m + step; mb += step) {
          if (mb < m) table.push(rank, {action_kind::backward_input, chunk, mb});
          if (mb >= step) table.push(rank, {action_kind::backward_weight, chunk, mb - step});
        }
      }
    }
  }
};

}  // namespace laws
