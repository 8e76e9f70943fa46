// SPDX-License-Identifier: BSL-1.0
//
// List scheduling: played in time, every rank that is free takes, of the actions that could start now, the one that a rule prefers.
// For families whose order is defined by such a rule, and for placements for which nobody has written an order down.
#pragma once

#include <climits>

#include <pipe/schedule/event_queue.hpp>
#include <pipe/schedule/policy.hpp>

namespace pp {

/// Fills `table` with F and BW of all chunks. Of the actions whose inputs are there a rank takes the one with the least order(action).
/// may(action, in_flight): whether an F may begin while so many micro-batches are in flight in its chunk (and replica).
///
/// needs: may is true for in_flight 0
/// cost:  n times chunks per rank, and log p, for n actions
template <pipeline_problem Problem, action_table Table, class Order, class May>
constexpr void list_schedule(Problem const& problem, Table& table, Order order, May may) {
  using enum action_kind;
  int const p = problem.ranks, m = problem.micro_batches, copies = replicas(table.where);
  int const held = problem.chunks * copies / p;  // chunks of a rank
  auto ended = scratch<long>(2 * problem.chunks * m, -1);
  auto next = scratch<int>(2 * p * held);  // by rank and chunk: the next F and the next BW, in turns of the replica
  auto asleep = scratch<bool>(p);
  event_queue events(p);
  for (int rank = 0; rank < p; ++rank) events.put({0, rank});
  auto const ended_at = [&](bool is_forward, int chunk, int mb) -> long& {
    return ended.item[2 * (chunk * m + mb) + (is_forward ? 0 : 1)];
  };

  while (!events.empty()) {
    auto const [now, rank] = events.take();
    action best{};
    long best_number = LONG_MAX, soonest = LONG_MAX;
    int best_place = -1;
    for (int index = 0; index < held; ++index) {
      int const chunk = copies == 1 ? chunk_on(table.where, p, rank, index) : index == 0 ? rank : p - 1 - rank;
      for (bool is_forward : {true, false}) {
        int const place = 2 * (rank * held + index) + (is_forward ? 0 : 1);
        int const mb = next.item[place] * copies + (copies == 1 ? 0 : index);
        if (mb >= m) continue;
        action const a{is_forward ? forward : backward, chunk, mb};
        int const in_flight = next.item[place & ~1] - next.item[place | 1];
        if (is_forward && !may(a, in_flight)) continue;
        if (!is_forward && in_flight == 0) continue;
        int const source = is_forward ? chunk - 1 : chunk + 1;
        long ready = 0;
        if (source >= 0 && source < problem.chunks) {
          ready = ended_at(is_forward, source, mb);
          if (ready < 0) continue;
          ready += problem.hop_time(rank_of(table.where, p, source, mb), rank, is_forward ? source : chunk);
        }
        if (ready > now) {
          soonest = ready < soonest ? ready : soonest;
          continue;
        }
        if (long const number = order(a); number < best_number) {
          best = a;
          best_number = number;
          best_place = place;
        }
      }
    }
    if (best_place < 0) {
      if (soonest < LONG_MAX)
        events.put({soonest, rank});
      else
        asleep.item[rank] = true;
      continue;
    }
    ++next.item[best_place];
    long const end = now + problem.time(best);
    table.push(rank, best);
    ended_at(best.kind == forward, best.chunk, best.micro_batch) = end;
    events.put({end, rank});
    int const target = best.kind == forward ? best.chunk + 1 : best.chunk - 1;
    if (target < 0 || target >= problem.chunks) continue;
    int const who = rank_of(table.where, p, target, best.micro_batch);
    if (!asleep.item[who]) continue;
    asleep.item[who] = false;
    events.put({now, who});
  }
}

}  // namespace pp
