// SPDX-License-Identifier: BSL-1.0
//
// The hand-made schedules of zero-bubble pipelining: with B and W apart, only F and B are on the
// path from rank to rank, and Ws fill time that would be idle.
#pragma once

#include <pipe/schedule/policy.hpp>

namespace pp {

namespace detail {

/// Rank r runs (P-1-r) `Ahead` forwards, then F (while there are any) and B in turn. An F with its
/// B is followed by a W once Ws have been delayed for as long as the warm-up of the first rank, or
/// once no forwards are left.
template <int Ahead, pipeline_problem Problem, action_table Table>
constexpr void fill_zero_bubble(Problem const& problem, Table& table) {
  using enum action_kind;
  int const p = problem.ranks, m = problem.micro_batches;
  for (int rank = 0; rank < p; ++rank) {
    int const warm_up = (p - 1 - rank) * Ahead;
    int next = 0, weight = 0;
    while (next < m && next < warm_up) table.push(rank, {forward, rank, next++});
    for (int mb = 0; mb < m; ++mb) {
      if (next < m) table.push(rank, {forward, rank, next++});
      table.push(rank, {backward_input, rank, mb});
      if (warm_up + mb >= (p - 1) * Ahead || next == m)
        table.push(rank, {backward_weight, rank, weight++});
    }
    while (weight < m) table.push(rank, {backward_weight, rank, weight++});
  }
}

}  // namespace detail

/// ZB-H1: the memory of 1F1B and about a third of its bubble.
///
/// law:    equal times TF = TB = TW without hops: the bubble of every rank is (P-1)(TF+TB-TW); the
///         peak is min(M, P)
/// source: Qi et al., Zero Bubble Pipeline Parallelism, 2024, section 2.3
///
/// P = 4, M = 6, equal times; 0 1 2: F of a micro-batch, a b c: B, A B C: W:
///   rank 0  0123...aA4bB5cCdDeEfF
///   rank 1  .012..a3bA4cB5dCeDfEF
///   rank 2  ..01.a2b3cA4dB5eCfDEF
///   rank 3  ...0a1b2c3dA4eB5fCDEF
struct ZeroBubbleH1 {
  static constexpr char const* name = "zb-h1";
  static constexpr schedules::placement where = schedules::placement::straight;
  static constexpr int chunks_per_rank = 1;
  static constexpr bool splits_backward = true;
  static constexpr bool trains = true;

  template <schedules::pipeline_problem Problem, detail::action_table Table>
  static constexpr void fill(Problem const& problem, Table& table) {
    detail::fill_zero_bubble<1>(problem, table);
  }
};

/// ZB-H2: no bubble in the stage-local span where TF = TB = TW, for twice the memory of 1F1B.
///
/// law:    equal times: stage-local idle is (P-1)(TF+TB-2TW), or 0; the peak is min(M, 2P-1)
/// source: Qi et al., Zero Bubble Pipeline Parallelism, 2024, section 2.3
///
/// P = 4, M = 7, equal times; 0 1 2: F of a micro-batch, a b c: B, A B C: W:
///   rank 0  0123456aAbBcCdDeEfFgG...
///   rank 1  .01234a5b6cAdBeCfDgEFG..
///   rank 2  ..012a3b4c5d6eAfBgCDEFG.
///   rank 3  ...0a1b2c3d4e5f6gABCDEFG
struct ZeroBubbleH2 {
  static constexpr char const* name = "zb-h2";
  static constexpr schedules::placement where = schedules::placement::straight;
  static constexpr int chunks_per_rank = 1;
  static constexpr bool splits_backward = true;
  static constexpr bool trains = true;

  template <schedules::pipeline_problem Problem, detail::action_table Table>
  static constexpr void fill(Problem const& problem, Table& table) {
    detail::fill_zero_bubble<2>(problem, table);
  }
};

}  // namespace pp
