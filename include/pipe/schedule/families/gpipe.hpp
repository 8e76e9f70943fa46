// SPDX-License-Identifier: BSL-1.0
//
// GPipe: all forwards, then all backwards. The simplest schedule, and the one with the most memory:
// the activations of every micro-batch are alive at once, which is why the paper pairs it with
// recomputation.
#pragma once

#include <initializer_list>

#include <pipe/schedule/policy.hpp>

namespace pp {

/// All forwards, then all backwards.
///
/// law:    with equal times the bubble is (P-1)/(M+P-1); every rank's peak is M micro-batches
/// note:   backwards run in micro-batch order, not in the paper's reverse order, so that gradients
///         are summed in the same order by every schedule
/// source: Huang et al., GPipe, 2019
///
/// P = 4, M = 6, equal times; 0 1 2: F of a micro-batch, aa bb cc: its backward:
///   rank 0  012345.........aabbccddeeff
///   rank 1  .012345......aabbccddeeff..
///   rank 2  ..012345...aabbccddeeff....
///   rank 3  ...012345aabbccddeeff......
struct GPipe {
  static constexpr char const* name = "gpipe";
  static constexpr schedules::placement where = schedules::placement::straight;
  static constexpr int chunks_per_rank = 1;
  static constexpr bool splits_backward = false;
  static constexpr bool trains = true;
  static constexpr bool replicates = true;

  template <schedules::pipeline_problem Problem, detail::action_table Table>
  static constexpr void fill(Problem const& problem, Table& table) {
    using enum schedules::action_kind;
    for (int chunk = 0; chunk < problem.chunks; ++chunk)
      for (schedules::action_kind kind : {forward, backward})
        for (int mb = 0; mb < problem.micro_batches; ++mb)
          table.push(rank_of(table.where, problem.ranks, chunk, mb), {kind, chunk, mb});
  }
};

}  // namespace pp
