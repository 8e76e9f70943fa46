// SPDX-License-Identifier: BSL-1.0
//
// The law of transfers that buffer nothing: no rank waits for ever.
#pragma once

#include <pipe/schedule/communication.hpp>

namespace pp::detail {

/// Whether every rank reaches the end of its steps when a send and its receive complete together
/// and each side blocks until then. Otherwise the first rank that is stuck, and its position.
template <schedules::pipeline_problem Problem, class Steps>
constexpr schedules::verdict check_rendezvous(Problem const& problem, Steps const& steps) {
  auto position = scratch<int>(problem.ranks);
  auto awake = scratch<int>(problem.ranks);
  auto is_awake = scratch<bool>(problem.ranks);
  int count = 0;
  auto const wake = [&](int rank) {
    if (!is_awake.item[rank]) awake.item[count++] = rank;
    is_awake.item[rank] = true;
  };
  for (int rank = problem.ranks - 1; rank >= 0; --rank) wake(rank);
  auto const at_end = [&](int rank) { return position.item[rank] == steps.size(rank); };
  while (count > 0) {
    int const rank = awake.item[--count];
    is_awake.item[rank] = false;
    while (!at_end(rank)) {
      rank_instruction const mine = steps.at(rank, position.item[rank]);
      if (mine.kind != instruction_kind::compute) {
        int const peer = mine.peer;
        if (peer < 0 || peer >= problem.ranks || peer == rank || at_end(peer)) break;
        rank_instruction const theirs = steps.at(peer, position.item[peer]);
        bool const meets = theirs.kind != instruction_kind::compute && theirs.kind != mine.kind &&
                           theirs.peer == rank && theirs.of == mine.of;
        if (!meets) break;
        ++position.item[peer];
        wake(peer);
      }
      ++position.item[rank];
    }
  }
  for (int rank = 0; rank < problem.ranks; ++rank)
    if (!at_end(rank))
      return schedules::verdict{fault::deadlock, rank, position.item[rank],
                                steps.at(rank, position.item[rank]).of};
  return schedules::verdict{};
}

}  // namespace pp::detail
