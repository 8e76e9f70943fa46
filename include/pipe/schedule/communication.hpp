// SPDX-License-Identifier: BSL-1.0
//
// Sends and receives, derived from a table. A schedule says what is computed. The transfers that
// this needs follow from the table. So does an order of transfers that cannot deadlock under the
// strictest transport, a rendezvous of blocking sends and receives.
//
// All transfers and actions are ordered by the simulated timeline, a transfer at the time when its
// value is ready. Every rank's list follows this order, so both sides of the first pending transfer
// are always free for that transfer.
#pragma once

#include <algorithm>
#include <climits>

#include <pipe/schedule/rank_instruction.hpp>
#include <pipe/schedule/validate.hpp>

namespace pp {

namespace detail {

/// The other rank that needs the result of an action, or -1 if there is none.
template <pipeline_problem Problem, action_table Table>
constexpr int receiver_of(Problem const& problem, Table const& table, int rank, action const& a) {
  int const next = a.kind == action_kind::forward ? a.chunk + 1
                   : makes_input_gradient(a.kind) ? a.chunk - 1
                                                  : -1;
  if (next < 0 || next >= problem.chunks) return -1;
  int const to = rank_of(table.where, problem.ranks, next, a.micro_batch);
  return to == rank ? -1 : to;
}

}  // namespace detail

namespace schedules {

/// The list of instructions of every rank.
///
/// law:   on each directed pair of ranks, sends and receives are the same transfers in the same
///        order
/// law:   every rank reaches the end of its instructions also where a send and its receive complete
///        together and each side blocks until then
/// law:   a value is received before it is read, and sent as soon as it is ready
/// law:   a rank with k `slots` at a boundary, micro-batch n in slot n % k, has read the old value
///        of a slot for the last time before it receives the next
/// needs: validate(problem, table); with these slots the table gets to its end
/// cost:  n log n in the number of actions
template <pipeline_problem Problem, detail::action_table Table,
          class Slots = detail::unbounded_slots>
constexpr auto communicate(Problem const& problem, Table const& table, Slots const& slots = {}) {
  // A moment: a time and, among equal times, a position in an order in which every action follows
  // its inputs.
  struct event {
    long time = 0;
    int number = 0, from = 0, to = 0;
    action of{};
    constexpr bool operator<(event const& b) const {
      return time != b.time ? time < b.time : number < b.number;
    }
  };
  struct moment {
    long time = 0;
    int number = 0;
  };
  int total = 0;
  for (int rank = 0; rank < problem.ranks; ++rank) total += table.size(rank);
  auto events = detail::scratch<event>(total);
  auto begun = table.template like<moment>();
  int count = 0, number = 0;
  auto paper = detail::execution<Problem, Table, Slots>(problem, table, slots);
  paper.run([&](int rank, long start, long, long ready) {
    action const a = table.at(rank, begun.size(rank));
    begun.push(rank, moment{start, number});
    if (int const to = detail::receiver_of(problem, table, rank, a); to >= 0)
      events.item[count++] = event{ready, number, rank, to, a};
    ++number;
  });
  std::sort(events.item, events.item + count);

  auto instructions = table.template like<detail::rank_instruction, 3>();
  auto next = detail::scratch<int>(problem.ranks);
  auto const compute_until = [&](int rank, long time, int last_number) {
    for (int& i = next.item[rank]; i < begun.size(rank); ++i) {
      moment const m = begun.at(rank, i);
      if (m.time > time || (m.time == time && m.number > last_number)) break;
      instructions.push(
          rank, detail::rank_instruction{detail::instruction_kind::compute, table.at(rank, i), -1});
    }
  };
  for (int e = 0; e < count; ++e) {
    event const& t = events.item[e];
    compute_until(t.from, t.time, t.number);
    compute_until(t.to, t.time, t.number);
    instructions.push(t.from, detail::rank_instruction{detail::instruction_kind::send, t.of, t.to});
    instructions.push(t.to,
                      detail::rank_instruction{detail::instruction_kind::receive, t.of, t.from});
  }
  for (int rank = 0; rank < problem.ranks; ++rank) compute_until(rank, LONG_MAX, INT_MAX);
  return instructions;
}

}  // namespace schedules

}  // namespace pp
