// SPDX-License-Identifier: BSL-1.0
//
// Schedules as a user would write them, to run the laws under orders that the library's own do not
// have.
#pragma once

#include <pipe/schedule/policy.hpp>

namespace laws {

using pp::schedules::action_kind;

struct one_chunk {
  static constexpr pp::schedules::placement where = pp::schedules::placement::straight;
  static constexpr int chunks_per_rank = 1;
  static constexpr bool trains = true;
};

/// B and W apart, as ZB-H1 (Qi et al., 2024): rank r runs P-1-r forwards ahead and its Ws r
/// micro-batches late.
struct LateWeights : one_chunk {
  static constexpr char const* name = "late_weights";
  static constexpr bool splits_backward = true;

  template <class Problem, class Table>
  static constexpr void fill(Problem const& problem, Table& table) {
    int const ranks = problem.ranks, m = problem.micro_batches;
    for (int rank = 0; rank < ranks; ++rank) {
      int const ahead = ranks - 1 - rank;
      int next = 0, weights = 0;
      while (next < m && next < ahead) table.push(rank, {action_kind::forward, rank, next++});
      for (int mb = 0; mb < m; ++mb) {
        if (next < m) table.push(rank, {action_kind::forward, rank, next++});
        table.push(rank, {action_kind::backward_input, rank, mb});
        if (mb >= rank) table.push(rank, {action_kind::backward_weight, rank, weights++});
      }
      while (weights < m) table.push(rank, {action_kind::backward_weight, rank, weights++});
    }
  }
};

/// All Fs, then all Bs, then all Ws: the longest any value has to wait.
struct LastWeights : one_chunk {
  static constexpr char const* name = "last_weights";
  static constexpr bool splits_backward = true;

  template <class Problem, class Table>
  static constexpr void fill(Problem const& problem, Table& table) {
    for (int rank = 0; rank < problem.ranks; ++rank)
      for (auto kind :
           {action_kind::forward, action_kind::backward_input, action_kind::backward_weight})
        for (int mb = 0; mb < problem.micro_batches; ++mb) table.push(rank, {kind, rank, mb});
  }
};

/// Ws at once on even ranks, all at the end on odd ones: neighbours that keep each other's values
/// for different times.
struct MixedWeights : one_chunk {
  static constexpr char const* name = "mixed_weights";
  static constexpr bool splits_backward = true;

  template <class Problem, class Table>
  static constexpr void fill(Problem const& problem, Table& table) {
    int const m = problem.micro_batches;
    for (int rank = 0; rank < problem.ranks; ++rank) {
      bool const late = rank % 2 == 1;
      for (int mb = 0; mb < m; ++mb) table.push(rank, {action_kind::forward, rank, mb});
      for (int mb = 0; mb < m; ++mb) {
        table.push(rank, {action_kind::backward_input, rank, mb});
        if (!late) table.push(rank, {action_kind::backward_weight, rank, mb});
      }
      for (int mb = 0; late && mb < m; ++mb)
        table.push(rank, {action_kind::backward_weight, rank, mb});
    }
  }
};

/// Several chunks per rank: all forwards, chunk by chunk, then all backwards in reverse.
template <pp::schedules::placement Where, int Chunks, bool Splits = false>
struct ManyChunks {
  static constexpr char const* name = "many_chunks";
  static constexpr pp::schedules::placement where = Where;
  static constexpr int chunks_per_rank = Chunks;
  static constexpr bool splits_backward = Splits;
  static constexpr bool trains = true;

  template <class Problem, class Table>
  static constexpr void fill(Problem const& problem, Table& table) {
    using enum action_kind;
    for (int rank = 0; rank < problem.ranks; ++rank) {
      for (int i = 0; i < Chunks; ++i)
        for (int mb = 0; mb < problem.micro_batches; ++mb)
          table.push(rank, {forward, pp::schedules::chunk_on(Where, problem.ranks, rank, i), mb});
      for (int i = Chunks - 1; i >= 0; --i)
        for (int mb = 0; mb < problem.micro_batches; ++mb) {
          int const chunk = pp::schedules::chunk_on(Where, problem.ranks, rank, i);
          table.push(rank, {Splits ? backward_input : backward, chunk, mb});
          if (Splits) table.push(rank, {backward_weight, chunk, mb});
        }
    }
  }
};

}  // namespace laws
