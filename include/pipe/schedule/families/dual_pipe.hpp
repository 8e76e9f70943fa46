// SPDX-License-Identifier: BSL-1.0
//
// DualPipe: two pipelines through the same ranks in opposite directions. An F of one pipeline runs
// next to a backward of the other, so that the transfers of each overlap the computation of the
// other. DualPipeV is its half on a V, where the way back up is the second direction.
#pragma once

#include <initializer_list>

#include <pipe/schedule/policy.hpp>

namespace pp {

namespace detail {

/// The order of a rank over two streams of `each` micro-batches; stream 0 is the one that reaches
/// the rank first. `half` ranks lie between an end and the bend, and this rank is the `at`-th from
/// its end. Calls run(kind, stream, with_next) for the stream's next micro-batch; with_next: the
/// action is the forward of a pair.
///
/// needs:  each >= 2 half
/// source: DeepSeek-AI, DualPipe, 2025: its eight steps. On the ranks at the bend the first F of
///         the fourth and the backward beside it are no pair: the next rank gets that F earlier.
template <class Run>
constexpr void run_dual(int at, int half, int each, Run act) {
  using enum action_kind;
  auto const run = [&](action_kind kind, int stream) { act(kind, stream, false); };
  auto const pair = [&](int f, int b, bool together = true) {
    act(forward, f, together), run(backward, b);
  };
  int const inner = half - 1 - at;  // ranks from here to the bend
  for (int i = 0; i < 2 * inner; ++i) run(forward, 0);
  for (int i = 0; i <= at; ++i) run(forward, 0), run(forward, 1);
  for (int i = 0; i < inner; ++i) run(backward_input, 1), run(backward_weight, 1), run(forward, 1);
  for (int i = 0; i < each - 2 * half + at + 1; ++i) {
    pair(0, 1, i > 0 || inner > 0);
    pair(1, 0);
  }
  for (int i = 0; i < inner; ++i) run(backward, 1), pair(1, 0);
  // From the middle on Ws are delayed; the streams alternate, beginning with the stream of the
  // first delayed W.
  int const middle = (at + 1) / 2;
  bool const from_1 = at % 2 == 1;
  auto const waits = [&](int i, int stream) {
    return i > middle || (i == middle && (from_1 || stream == 0));
  };
  int put_off = 0;
  for (int i = 0; i <= at; ++i)
    for (int stream : {1, 0}) {
      run(waits(i, stream) ? backward_input : backward, stream);
      put_off += waits(i, stream);
    }
  // Delayed Ws of both streams in turn, in the order of the delay; then those of stream 0.
  int next = from_1 ? 1 : 0;
  int both = put_off;
  auto const weight = [&] {
    if (both > 0) {
      --both;
      run(backward_weight, next);
      next = 1 - next;
    } else {
      run(backward_weight, 0);
    }
  };
  for (int i = 0; i < inner; ++i) weight(), run(backward_input, 0);
  for (int i = 0; i <= at; ++i) weight();
}

/// The next micro-batch of a rank, by stream and kind (F, B, W).
struct stream_progress {
  int done[2][3]{};
  constexpr int next(action_kind kind, int stream) {
    int const mb = done[stream][kind == action_kind::forward ? 0
                                : makes_input_gradient(kind) ? 1
                                                             : 2]++;
    if (kind == action_kind::backward) ++done[stream][2];
    return mb;
  }
};

}  // namespace detail

/// Two directions at once, so that two ranks hold each chunk, forward and backward side by side.
///
/// law:    TF = TB = TW without hops: every rank is idle for (P/2-1) TF; the peak is P+1
///         micro-batches; two copies of the weights, unless ranks share memory
/// note:   an F runs, and then the backward beside that F; Paired<DualPipe> runs the two together
/// needs:  P even; M even, at least 2P
struct DualPipe {
  static constexpr char const* name = "dualpipe";
  static constexpr schedules::placement where = schedules::placement::bidirectional;
  static constexpr int chunks_per_rank = 2;
  static constexpr bool splits_backward = true;
  static constexpr bool trains = true;

  static constexpr char const* refuses(int ranks, int micro_batches) {
    return ranks % 2 != 0 ? "needs an even number of ranks"
           : micro_batches % 2 != 0 || micro_batches < 2 * ranks
               ? "needs an even number of micro-batches, at least twice the ranks"
               : nullptr;
  }
  template <schedules::pipeline_problem Problem, detail::action_table Table>
  static constexpr void fill(Problem const& problem, Table& table) {
    fill_paired(problem, table, false);
  }
  /// The table, with the authors' pairs if `pairs`.
  template <schedules::pipeline_problem Problem, detail::action_table Table>
  static constexpr void fill_paired(Problem const& problem, Table& table, bool pairs = true) {
    int const p = problem.ranks, half = p / 2;
    for (int rank = 0; rank < p; ++rank) {
      bool const upper = rank >= half;  // the stream that runs up the ranks reaches this rank first
      detail::stream_progress progress;
      detail::run_dual(
          upper ? p - 1 - rank : rank, half, problem.micro_batches / 2,
          [&](schedules::action_kind kind, int stream, bool with_next) {
            bool const goes_up = (stream == 1) != upper;
            table.push(rank, {kind, goes_up ? p - 1 - rank : rank,
                              2 * progress.next(kind, stream) + goes_up, 0, with_next && pairs});
          });
    }
  }
};

/// DualPipe folded in the middle: two chunks on each rank and one copy of the weights.
///
/// law:    as DualPipe with twice the ranks; the peak is 2P+1 chunks
/// needs:  M at least 2P
struct DualPipeV {
  static constexpr char const* name = "dualpipe-v";
  static constexpr schedules::placement where = schedules::placement::vee;
  static constexpr int chunks_per_rank = 2;
  static constexpr bool splits_backward = true;
  static constexpr bool trains = true;

  static constexpr char const* refuses(int ranks, int micro_batches) {
    return micro_batches < 2 * ranks ? "needs at least twice as many micro-batches as ranks"
                                     : nullptr;
  }
  template <schedules::pipeline_problem Problem, detail::action_table Table>
  static constexpr void fill(Problem const& problem, Table& table) {
    fill_paired(problem, table, false);
  }
  /// The table, with the authors' pairs if `pairs`.
  template <schedules::pipeline_problem Problem, detail::action_table Table>
  static constexpr void fill_paired(Problem const& problem, Table& table, bool pairs = true) {
    int const p = problem.ranks;
    for (int rank = 0; rank < p; ++rank) {
      detail::stream_progress progress;
      detail::run_dual(rank, p, problem.micro_batches,
                       [&](schedules::action_kind kind, int stream, bool with_next) {
                         table.push(rank, {kind, stream == 0 ? rank : 2 * p - 1 - rank,
                                           progress.next(kind, stream), 0, with_next && pairs});
                       });
    }
  }
};

}  // namespace pp
