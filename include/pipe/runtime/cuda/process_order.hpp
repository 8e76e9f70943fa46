// SPDX-License-Identifier: BSL-1.0
//
// One order of all actions, transfers and sums over replicas of a pipeline, from which each process
// takes its own. Every process derives the same one, so that the exchanges of any two are in the
// same order.
#pragma once

#include <vector>

#include <pipe/runtime/description.hpp>
#include <pipe/runtime/device_blocks.hpp>
#include <pipe/schedule/action.hpp>
#include <pipe/schedule/execution.hpp>
#include <pipe/schedule/rank_step.hpp>

namespace pp::detail {

/// What the host enqueues next: an action of a rank of this process, the exchange of its result
/// with another process, or the sum over replicas of the gradients that it has completed.
struct cuda_turn {
  enum class kinds : unsigned char { run, exchange, sum };
  int rank = 0;
  action of{};
  kinds kind = kinds::run;
  /// Of an action: the sum begins while it runs, piece by piece; what is left has the next turn.
  bool adds_up = false;
};

}  // namespace pp::detail

namespace pp::cuda {

/// A compute step of a rank, or a transfer between two.
struct ordered_step {
  detail::rank_step step;
  int rank = 0;
};

/// Merges the steps of all ranks. The first rank that can go on does: its next step is to compute,
/// or to send to a rank that receives next.
///
/// law:   each rank's steps are in their order; of a transfer there is its send only
/// needs: steps of communicate(), by which every rank reaches its end
[[gnu::cold]] inline std::vector<ordered_step> merge_steps(detail::rank_steps const* steps,
                                                           int ranks, bool trains) {
  std::vector<ordered_step> all;
  std::vector<int> at(static_cast<std::size_t>(ranks));
  auto const next = [&](int rank) -> detail::rank_step const* {
    detail::rank_steps const& mine = steps[rank];
    int const i = at[std::size_t(rank)];
    if (i == (trains ? mine.training_count : mine.evaluation_count)) return nullptr;
    return (trains ? mine.training : mine.evaluation) + i;
  };
  for (bool goes_on = true; goes_on;) {
    goes_on = false;
    for (int r = 0; r < ranks; ++r) {
      detail::rank_step const* const mine = next(r);
      if (mine == nullptr || mine->kind == detail::step_kind::receive) continue;
      if (mine->kind == detail::step_kind::send) {
        detail::rank_step const* const theirs = next(mine->peer);
        if (theirs == nullptr || theirs->kind != detail::step_kind::receive || theirs->peer != r ||
            theirs->of != mine->of)
          continue;
        ++at[std::size_t(mine->peer)];
      }
      all.push_back({*mine, r});
      ++at[std::size_t(r)];
      goes_on = true;
    }
  }
  return all;
}

/// The part that a process enqueues, in the same order: the actions of its ranks, the transfers
/// between one of them and a rank of another process and, if there are replicas, the sum of each
/// chunk's gradients: with its last action, or behind the transfer of that one's result to another
/// process, which waits for it.
///
/// law: the order is that of the table, whatever part of a mini-batch a replica has
[[gnu::cold]] inline std::vector<detail::cuda_turn> turns_of(std::vector<ordered_step> const& all,
                                                             detail::local_devices const& local) {
  using turn = detail::cuda_turn;
  std::vector<turn> turns;
  auto const completes = [&](std::size_t i, int chunk) {
    schedules::action const& a = all[i].step.of;
    return a.chunk == chunk && detail::makes_weight_gradient(a.kind);
  };
  for (std::size_t i = 0; i < all.size(); ++i) {
    auto const& [step, rank] = all[i];
    bool const is_local = local.has(rank);
    if (step.kind != detail::step_kind::compute) {
      if (is_local != local.has(step.peer)) turns.push_back({rank, step.of, turn::kinds::exchange});
    } else if (is_local) {
      turns.push_back({rank, step.of, turn::kinds::run});
    }
    if (local.replicas == 1 || !is_local || !completes(i, step.of.chunk)) continue;
    std::size_t later = i + 1;
    while (later < all.size() && !completes(later, step.of.chunk)) ++later;
    if (later < all.size()) continue;
    turn& made = turns.back();
    made.adds_up = made.kind == turn::kinds::run && made.of == step.of;
    turns.push_back({rank, step.of, turn::kinds::sum});
  }
  return turns;
}

/// A topological order of a table's actions: the ranks in the order in which they take their next
/// action. `slots`: of each boundary, which bound how far a rank may run ahead.
///
/// shape: rows: a table -> turns[actions of the table]
/// needs: the table gets to its end with these slots
template <class Problem, class Rows>
[[gnu::cold]] std::vector<detail::cuda_turn> order_of(
    Problem const& problem, Rows const& rows, std::vector<detail::slot_count> const& slots) {
  std::vector<detail::cuda_turn> order;
  std::vector<int> next(std::size_t(problem.ranks));  // by rank
  auto walk =
      detail::execution<Problem, Rows, std::vector<detail::slot_count>>(problem, rows, slots);
  walk.run([&](int rank, long, long, long) {
    order.push_back({rank, rows.at(rank, next[std::size_t(rank)]++)});
  });
  return order;
}

}  // namespace pp::cuda
