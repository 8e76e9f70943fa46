// SPDX-License-Identifier: BSL-1.0
//
// Forward only, for inference and evaluation between training steps: a policy like any other, so
// that the same code validates, simulates and runs it.
#pragma once

#include <pipe/schedule/policy.hpp>

namespace pp {

/// The schedule of inference: every micro-batch once through all chunks.
///
/// law: with equal times the makespan is (M+P-1) TF; nothing is stored for a backward
struct ForwardOnly {
  static constexpr char const* name = "forward-only";
  static constexpr schedules::placement where = schedules::placement::straight;
  static constexpr int chunks_per_rank = 1;
  static constexpr bool splits_backward = false;
  static constexpr bool trains = false;

  template <schedules::pipeline_problem Problem, detail::action_table Table>
  static constexpr void fill(Problem const& problem, Table& table) {
    for (int rank = 0; rank < problem.ranks; ++rank)
      for (int mb = 0; mb < problem.micro_batches; ++mb)
        table.push(rank, {schedules::action_kind::forward, rank, mb});
  }
};

}  // namespace pp
