// SPDX-License-Identifier: BSL-1.0
//
// The placement of Ws in an order of Fs and Bs. Only memory and the update wait for a W, so a W
// runs where its rank would be idle otherwise, or where the next F does not fit into memory before
// a W has run. Both depend on the times, so the order is simulated while the Ws are placed.
#pragma once

#include <climits>

#include <pipe/schedule/policy.hpp>
#include <pipe/schedule/scratch.hpp>

namespace pp {

namespace detail {

/// The gaps that a W may fill: only gaps at least as long as the W, or any.
enum class gap_rule : unsigned char { long_enough, any };

}  // namespace detail

namespace schedules {

/// Fills `table` with the rows of `fixed`, which has every F and B, and with all Ws, on each rank
/// in the order of its Bs. limit(rank) is the memory above which no F begins while a W can free
/// memory.
///
/// law:   the order of the fixed actions stays; if `fixed` validates but for the missing Ws, the
///        table validates
/// cost:  linear in the number of actions
template <pipeline_problem Problem, class Fixed, detail::action_table Table, class Limit>
constexpr void weave(Problem const& problem, Fixed const& fixed, Table& table, Limit limit,
                     detail::gap_rule rule) {
  using enum action_kind;
  struct place {
    // Positions in the rank's fixed row: of the next action, and of the next B whose W has not run.
    int next = 0, weight = 0;
    int also_waiting = 0;  // 1 + the rank that waits for the same result, or 0
    long clock = 0, live = 0;
  };
  int const p = problem.ranks, m = problem.micro_batches, values = problem.chunks * m;
  auto ranks = detail::scratch<place>(p);
  // By chunk and micro-batch, first for F, then for B: 1 + the time at which the action ends, and 1
  // + the last rank that began to wait for that end; 0 for none.
  auto ended = detail::scratch<long>(2 * values);
  auto waiting = detail::scratch<int>(2 * values);
  auto awake = detail::scratch<int>(p);
  int count = 0;
  while (count < p) awake.item[count] = count, ++count;

  while (count > 0) {
    int const rank = awake.item[--count], size = fixed.size(rank);
    long const most = limit(rank);
    place& at = ranks.item[rank];
    for (bool goes_on = true; goes_on;) {
      bool const at_end = at.next == size;
      action const a = at_end ? action{} : fixed.at(rank, at.next);
      bool const is_forward = a.kind == forward;
      int const source = is_forward ? a.chunk - 1 : a.chunk + 1,
                made = (is_forward ? 0 : values) + a.micro_batch;
      long ready = at_end ? LONG_MAX : 0;
      if (!at_end && source >= 0 && source < problem.chunks) {
        ready = ended.item[made + source * m] - 1;
        if (ready < 0) {
          at.also_waiting = waiting.item[made + source * m];
          waiting.item[made + source * m] = rank + 1;
          break;
        }
        ready += problem.hop_time(rank_of(table.where, p, source, a.micro_batch), rank,
                                  is_forward ? source : a.chunk);
      }
      chunk_cost const& cost = problem.cost(a.chunk);
      if (is_forward || at.clock < ready)
        while (at.weight < at.next && fixed.at(rank, at.weight).kind != backward_input) ++at.weight;
      if (at.weight < at.next && (is_forward || at.clock < ready)) {
        action const b = fixed.at(rank, at.weight);
        chunk_cost const& of_w = problem.cost(b.chunk);
        bool const is_gap = at.clock < ready && (rule == detail::gap_rule::any ||
                                                 at.clock + of_w.backward_weight <= ready);
        if (is_gap || (is_forward && at.live + cost.memory.forward > most)) {
          table.push(rank, action{backward_weight, b.chunk, b.micro_batch});
          at.clock += of_w.backward_weight;
          at.live += of_w.memory.backward_weight;
          ++at.weight;
          continue;
        }
      }
      goes_on = !at_end;
      if (at_end) continue;
      table.push(rank, a);
      at.clock =
          (at.clock < ready ? ready : at.clock) + (is_forward ? cost.forward : cost.backward_input);
      at.live += is_forward ? cost.memory.forward : cost.memory.backward_input;
      ++at.next;
      ended.item[made + a.chunk * m] = at.clock + 1;
      for (int who = waiting.item[made + a.chunk * m]; who > 0;
           who = ranks.item[who - 1].also_waiting)
        awake.item[count++] = who - 1;
    }
  }
}

}  // namespace schedules

}  // namespace pp
