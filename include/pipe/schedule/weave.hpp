// SPDX-License-Identifier: BSL-1.0
//
// Puts Ws into an order of Fs and Bs. Nobody but memory and the update waits for a W, so its place is wherever its rank would stand
// idle otherwise, or where the next F would not fit into memory without it. Where that is depends on the times: the order is
// played in time, as it will run.
#pragma once

#include <climits>

#include <pipe/schedule/event_queue.hpp>
#include <pipe/schedule/policy.hpp>

namespace pp {

/// Which waiting times a W may fill: those that are long enough for it, or any.
enum class gap_rule : unsigned char { long_enough, any };

/// Fills `table` with the rows of `fixed`, which has every F and B, and all Ws. limit(rank) is the memory above which no F begins as
/// long as a W can make room.
///
/// law:   the order of the fixed actions stays; if they validate but for the missing Ws, the table validates
/// cost:  n log p for n actions
template <pipeline_problem Problem, class Fixed, action_table Table, class Limit>
constexpr void weave(Problem const& problem, Fixed const& fixed, Table& table, Limit limit, gap_rule rule) {
  using enum action_kind;
  int const p = problem.ranks, m = problem.micro_batches;
  auto ended = scratch<long>(2 * problem.chunks * m, -1);   // of F and of B, by chunk and micro-batch
  auto waiting = scratch<int>(2 * problem.chunks * m, -1);  // the last rank that began to wait for it
  auto also_waiting = scratch<int>(p, -1);                  // by rank, the next one that waits for the same
  auto next = scratch<int>(p);                              // by rank, its next fixed action
  auto live = scratch<long>(p);
  auto first_place = scratch<int>(p + 1);  // where its Ws lie among `weights`
  for (int rank = 0; rank < p; ++rank) first_place.item[rank + 1] = first_place.item[rank] + fixed.size(rank);
  auto weights = scratch<action>(first_place.item[p]);  // that can run, or have, in the order of their Bs
  auto ready_weights = scratch<int>(p), run_weights = scratch<int>(p);
  event_queue events(p);
  for (int rank = 0; rank < p; ++rank) events.put({0, rank});

  auto const result = [&](bool is_forward, int chunk, int mb) { return 2 * (chunk * m + mb) + (is_forward ? 0 : 1); };
  // Where what F or B needs from a neighbouring chunk is found, and when this rank has it; -1: not known yet.
  auto const needed = [&](action const& a) {
    int const source = a.kind == forward ? a.chunk - 1 : a.chunk + 1;
    return source < 0 || source >= problem.chunks ? -1 : result(a.kind == forward, source, a.micro_batch);
  };
  auto const ready_at = [&](action const& a, int rank) {
    int const r = needed(a);
    if (r < 0) return 0L;
    if (ended.item[r] < 0) return -1L;
    int const source = r / 2 / m;
    return ended.item[r] +
           problem.hop_time(rank_of(table.where, p, source, a.micro_batch), rank, a.kind == forward ? source : a.chunk);
  };
  while (!events.empty()) {
    rank_event const event = events.take();
    long const now = event.time;
    int const rank = event.rank;
    auto const run = [&](action const& a) {
      table.push(rank, a);
      long const end = now + problem.time(a);
      live.item[rank] += problem.cost(a.chunk).memory.of(a.kind);
      events.put({end, rank});
      if (a.kind == backward_input)
        weights.item[first_place.item[rank] + ready_weights.item[rank]++] = {backward_weight, a.chunk, a.micro_batch};
      if (a.kind == backward_weight) return;
      int const made = result(a.kind == forward, a.chunk, a.micro_batch);
      ended.item[made] = end;
      for (int who = waiting.item[made]; who >= 0; who = also_waiting.item[who]) {
        long const there = ready_at(fixed.at(who, next.item[who]), who);
        events.put({there > now ? there : now, who});
      }
    };
    bool const has_weight = run_weights.item[rank] < ready_weights.item[rank];
    auto const run_weight = [&] { run(weights.item[first_place.item[rank] + run_weights.item[rank]++]); };
    if (next.item[rank] == fixed.size(rank)) {
      if (has_weight) run_weight();
      continue;
    }
    action const a = fixed.at(rank, next.item[rank]);
    long const ready = ready_at(a, rank);
    bool const fits = a.kind != forward || live.item[rank] + problem.cost(a.chunk).memory.forward <= limit(rank);
    if (has_weight && !fits) {
      run_weight();
    } else if (ready >= 0 && ready <= now) {
      ++next.item[rank];
      run(a);
    } else if (has_weight && (ready < 0 || rule == gap_rule::any ||
                              now + problem.cost(weights.item[first_place.item[rank] + run_weights.item[rank]].chunk)
                                          .backward_weight <=
                                  ready)) {
      run_weight();
    } else if (ready >= 0) {
      events.put({ready, rank});
    } else {
      int const missing = needed(a);
      also_waiting.item[rank] = waiting.item[missing];
      waiting.item[missing] = rank;
    }
  }
}

}  // namespace pp
