// SPDX-License-Identifier: BSL-1.0
//
// One order of all actions, transfers and sums over replicas of a pipeline, from which each process
// takes its own. Every process derives the same order, so that the exchanges of any two processes
// are in the same order.
#pragma once

#include <vector>

#include <pipe/runtime/description.hpp>
#include <pipe/runtime/device_blocks.hpp>
#include <pipe/schedule/action.hpp>
#include <pipe/schedule/execution.hpp>
#include <pipe/schedule/rank_instruction.hpp>

namespace pp::detail {

/// An entry of the order in which the host enqueues: an action of a rank of this process, the
/// exchange of an action's result with another process, or the sum over replicas of the gradients
/// that an action has completed.
struct cuda_entry {
  enum class kinds : unsigned char { run, exchange, sum };
  int rank = 0;
  action of{};
  kinds kind = kinds::run;
  /// If an action runs: the sum begins bucket by bucket during the action; the next entry sums what
  /// is left.
  bool adds_up = false;
};

}  // namespace pp::detail

namespace pp::cuda {

/// A compute instruction of a rank, or a transfer between two ranks.
struct ordered_instruction {
  detail::rank_instruction instruction;
  int rank = 0;
};

/// Merges the instructions of all ranks. In turn each rank that can takes its next instruction: to
/// compute, or to send to a rank whose next instruction is the receive.
///
/// law:   each rank's instructions stay in their order; a transfer is in the result as its send
///        only
/// needs: instructions of communicate(), by which every rank reaches its end
[[gnu::cold]] inline std::vector<ordered_instruction> merge_instructions(
    detail::rank_instructions const* instructions, int ranks, bool trains) {
  std::vector<ordered_instruction> all;
  std::vector<int> at(static_cast<std::size_t>(ranks));
  auto const next = [&](int rank) -> detail::rank_instruction const* {
    auto const& mine = trains ? instructions[rank].training : instructions[rank].evaluation;
    int const i = at[std::size_t(rank)];
    return i == mine.count ? nullptr : &mine[i];
  };
  for (bool goes_on = true; goes_on;) {
    goes_on = false;
    for (int r = 0; r < ranks; ++r) {
      detail::rank_instruction const* const mine = next(r);
      if (mine == nullptr || mine->kind == detail::instruction_kind::receive) continue;
      if (mine->kind == detail::instruction_kind::send) {
        detail::rank_instruction const* const theirs = next(mine->peer);
        if (theirs == nullptr || theirs->kind != detail::instruction_kind::receive ||
            theirs->peer != r || theirs->of != mine->of)
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

/// The part of the order that a process enqueues: the actions of its ranks, the transfers between
/// its ranks and ranks of other processes and, if there are replicas, the sum of each chunk's
/// gradients. The sum begins in the chunk's last action; if another process waits for the result of
/// this action, the sum comes behind the transfer.
///
/// law: the order follows from the table alone, whatever part of a mini-batch a replica has
[[gnu::cold]] inline std::vector<detail::cuda_entry> entries_of(
    std::vector<ordered_instruction> const& all, detail::local_devices const& local) {
  using entry = detail::cuda_entry;
  std::vector<entry> entries;
  auto const completes = [&](std::size_t i, int chunk) {
    schedules::action const& a = all[i].instruction.of;
    return a.chunk == chunk && detail::makes_weight_gradient(a.kind);
  };
  for (std::size_t i = 0; i < all.size(); ++i) {
    auto const& [instruction, rank] = all[i];
    bool const is_local = local.has(rank);
    if (instruction.kind != detail::instruction_kind::compute) {
      if (is_local != local.has(instruction.peer))
        entries.push_back({rank, instruction.of, entry::kinds::exchange});
    } else if (is_local) {
      entries.push_back({rank, instruction.of, entry::kinds::run});
    }
    if (local.replicas == 1 || !is_local || !completes(i, instruction.of.chunk)) continue;
    std::size_t later = i + 1;
    while (later < all.size() && !completes(later, instruction.of.chunk)) ++later;
    if (later < all.size()) continue;
    entry& made = entries.back();
    made.adds_up = made.kind == entry::kinds::run && made.of == instruction.of;
    entries.push_back({rank, instruction.of, entry::kinds::sum});
  }
  return entries;
}

/// A topological order of a table's actions: an entry for each action, in the order in which ranks
/// execute them. `slots`: the slots of each boundary, which bound how far a rank may run ahead.
///
/// shape: rows: a table -> entries[actions of the table]
/// needs: the table has no deadlock with these slots
template <class Problem, class Rows>
[[gnu::cold]] std::vector<detail::cuda_entry> order_of(
    Problem const& problem, Rows const& rows, std::vector<detail::slot_count> const& slots) {
  std::vector<detail::cuda_entry> order;
  std::vector<int> next(std::size_t(problem.ranks));  // by rank
  auto walk =
      detail::execution<Problem, Rows, std::vector<detail::slot_count>>(problem, rows, slots);
  walk.run([&](int rank, long, long, long) {
    order.push_back({rank, rows.at(rank, next[std::size_t(rank)]++)});
  });
  return order;
}

}  // namespace pp::cuda
