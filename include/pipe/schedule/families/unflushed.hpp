// SPDX-License-Identifier: BSL-1.0
//
// Schedules without a flush: the pipeline stays full from one update to the next. The order
// repeats: in its period n a rank runs the backwards of mini-batch n and, between them, forwards of
// micro-batches that are further ahead; then the rank updates. Each family has a rule for the
// version of the weights that an action reads.
#pragma once

#include <pipe/schedule/families/one_f_one_b.hpp>
#include <pipe/schedule/policy.hpp>

namespace pp {

namespace detail {

/// The largest integer that is at most a / b. needs: b > 0
constexpr int floor_divided(int a, int b) { return a >= 0 ? a / b : -((b - 1 - a) / b); }

/// An action's kind and micro-batch, and the numbers of the order: all that a version depends on.
struct version_question {
  action_kind kind;
  int micro_batch;  ///< in the whole run
  int ahead;        ///< micro-batches by which the rank's forwards are ahead of its backwards
  int ranks;
  int mini_batch;  ///< micro-batches from one update to the next
};

/// 1F1B with one chunk per rank, which goes on from mini-batch to mini-batch.
/// Rule::version(question) is the number of updates that the weights of an action have had; less
/// than 0 counts as 0.
///
/// needs: version() is one more for a micro-batch that is one mini-batch later
template <class Rule>
struct unflushed {
  using flushed = OneFOneB;
  static constexpr placement where = placement::straight;
  static constexpr int chunks_per_rank = 1;
  static constexpr bool splits_backward = false;
  static constexpr bool trains = true;
  static constexpr bool updates = true;
  static constexpr step_overlap overlap = step_overlap::free;

  /// Calls use(action) for the actions of rank `rank` in period 0. Period n has the same actions,
  /// with micro-batches n mini-batches later and versions n later.
  template <class Use>
  static constexpr void for_each_in_period(int ranks, int rank, int mini_batch, Use use) {
    using enum action_kind;
    int const ahead = ranks - 1 - rank;
    auto const act = [&](action_kind kind, int mb) {
      use(action{kind, rank, mb,
                 Rule::version(version_question{kind, mb, ahead, ranks, mini_batch})});
    };
    for (int i = 0; i < mini_batch; ++i) act(forward, i + ahead), act(backward, i);
  }
  /// Fills a table with a run of whole mini-batches, of `mini_batch` micro-batches each, and with
  /// the updates.
  template <pipeline_problem Problem, action_table Table>
  static constexpr void fill_run(Problem const& problem, Table& table, int mini_batch) {
    int const m = problem.micro_batches;
    table.mini_batch = mini_batch;
    table.drift = Rule::drift(problem.ranks, mini_batch);
    for (int rank = 0; rank < problem.ranks; ++rank)
      // The first periods have forwards only; in the last periods some forwards are missing.
      for (int n = -(problem.ranks - 1 - rank + mini_batch - 1) / mini_batch; n * mini_batch < m;
           ++n) {
        for_each_in_period(problem.ranks, rank, mini_batch, [&](action a) {
          a.micro_batch += n * mini_batch;
          a.version = a.version + n > 0 ? a.version + n : 0;
          if (a.micro_batch >= 0 && a.micro_batch < m) table.push(rank, a);
        });
        if (int const last = (n + 1) * mini_batch - 1; n >= 0 && last < m)
          table.push(rank, {action_kind::update, rank, last, n + 1});
      }
  }
};

}  // namespace detail

}  // namespace pp
