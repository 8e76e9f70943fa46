// SPDX-License-Identifier: BSL-1.0
//
// Schedules whose two directions fill each other's idle time: two pipelines in opposite directions
// (Chimera), or one that runs down the ranks and back up (Hanayo), with one copy of the weights.
// Both are list schedules with one rule: a backward first, else the oldest forward.
#pragma once

#include <pipe/schedule/list_schedule.hpp>

namespace pp {

namespace detail {

/// The rule: backwards first, the oldest micro-batch first, and of a micro-batch the last chunk
/// first.
template <pipeline_problem Problem>
constexpr auto backward_first(Problem const& problem) {
  return [chunks = long(problem.chunks),
          micro_batches = long(problem.micro_batches)](action const& a) {
    long const place = a.micro_batch * chunks + (chunks - 1 - a.chunk);
    return a.kind == action_kind::forward ? chunks * micro_batches + place : place;
  };
}

}  // namespace detail

/// Two directions at once, so that two ranks hold each chunk.
///
/// law:    P even, M a multiple of P, equal times F = B (B the full backward) without hops: every
///         rank is idle for P-2 forwards, a share of (P-2)/(2M+P-2); peaks are P/2+1 to P
///         micro-batches; two copies of the weights, unless ranks share memory
/// needs:  P even
/// source: Li and Hoefler, Chimera, 2021
struct Chimera {
  static constexpr char const* name = "chimera";
  static constexpr schedules::placement where = schedules::placement::bidirectional;
  static constexpr int chunks_per_rank = 2;
  static constexpr bool splits_backward = false;
  static constexpr bool trains = true;

  static constexpr char const* refuses(int ranks, int) {
    return ranks % 2 == 0 ? nullptr : "needs an even number of ranks";
  }
  template <schedules::pipeline_problem Problem, class Table>
  static constexpr void fill(Problem const& problem, Table& table) {
    int const p = problem.ranks;
    schedules::list_schedule(problem, table, detail::backward_first(problem),
                             [=](schedules::action const& a, int in_flight) {
                               return in_flight < p / 2 && in_flight < p - a.chunk;
                             });
  }
};

namespace detail {

/// A table that takes two micro-batches of a direction, one after the other, for each micro-batch
/// that is pushed.
template <action_table Table>
struct in_twos {
  Table& of;
  int micro_batches;
  placement where = placement::bidirectional;

  constexpr void push(int rank, action a) {
    int const direction = a.micro_batch % 2, first = 2 * (a.micro_batch - direction) + direction;
    for (int mb = first; mb <= first + 2 && mb < micro_batches; mb += 2)
      of.push(rank, {a.kind, a.chunk, mb});
  }
};

}  // namespace detail

/// Chimera with two micro-batches, one after the other, in each of its ticks: half as many groups,
/// whose gaps are a smaller share of the time. With the micro-batches of Chimera this is the
/// paper's forward doubling, with twice the activations, for which the paper recomputes. With twice
/// as many micro-batches of half the size this is the paper's backward halving, with the
/// activations of Chimera.
///
/// law:    P even, M a multiple of 2P, B = 2F (B the full backward) without hops: every rank is
///         idle for (P-2) (F+B)/2; peaks are those of Chimera, twice
/// needs:  P even
/// source: Li and Hoefler, Chimera, 2021
struct ChimeraDoubled : Chimera {
  static constexpr char const* name = "chimera-doubled";

  template <schedules::pipeline_problem Problem, detail::action_table Table>
  static constexpr void fill(Problem const& problem, Table& table) {
    Problem units = problem;
    units.micro_batches = (problem.micro_batches + 3) / 4 * 2;
    auto twos = detail::in_twos<Table>{table, problem.micro_batches};
    Chimera::fill(units, twos);
  }
};

/// Waves: a micro-batch runs down the ranks and back up `Waves` times, on placement::vee with 2
/// Waves chunks per rank.
///
/// law:    M a multiple of P, equal times F = B of a chunk without hops: every rank is idle for
///         (P-1) 2F, a bubble 2 Waves times smaller than that of 1F1B; the peak is at most 2 Waves
///         P chunks
/// source: Liu et al., Hanayo, 2023
///
/// P = 4, M = 4, one wave, equal times; 0 1 2: F of a micro-batch, aa bb cc: its backward:
///   rank 0  0123...0aa1bb2cc3dd...aa..bb..cc..dd
///   rank 1  .0123.0.1.aa2bb3cc..aaddbb..cc..dd..
///   rank 2  ..012031.2..aa3bb.aaccbbddcc..dd....
///   rank 3  ...00112233...aaaabbbbccccdddd......
template <int Waves = 1>
struct Hanayo {
  static constexpr char const* name = "hanayo";
  static constexpr schedules::placement where = schedules::placement::vee;
  static constexpr int chunks_per_rank = 2 * Waves;
  static constexpr bool splits_backward = false;
  static constexpr bool trains = true;

  template <schedules::pipeline_problem Problem>
  static constexpr char const* refuses(Problem const& problem) {
    return problem.chunks % (2 * problem.ranks) == 0
               ? nullptr
               : "needs an even number of chunks per rank: a wave runs down the ranks and back up";
  }
  template <schedules::pipeline_problem Problem, detail::action_table Table>
  static constexpr void fill(Problem const& problem, Table& table) {
    int const p = problem.ranks;
    schedules::list_schedule(
        problem, table, detail::backward_first(problem),
        [=](schedules::action const&, int in_flight) { return in_flight < p; });
  }
};

}  // namespace pp
