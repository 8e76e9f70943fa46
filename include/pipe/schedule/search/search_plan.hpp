// SPDX-License-Identifier: BSL-1.0
//
// Orders from plans. A plan is the due time of F and B of micro-batch 0 in every chunk; every
// further micro-batch is due one period later. The known families correspond to plans of different
// pace: the slower micro-batch 0 travels, the more micro-batches are in flight. A plan is only a
// priority: it is played with the real times and within the memory limit.
#pragma once

#include <climits>

#include <pipe/schedule/event_queue.hpp>
#include <pipe/schedule/search/search_problem.hpp>
#include <pipe/schedule/search/search_score.hpp>

namespace pp::detail {

/// How a plan is played. A rank takes the F or B that is due first. While that one waits for its
/// input, another one, or a W, may run before it.
///
/// source: any_gap, backward_first and ahead are what the greedy method of Qi et al., Zero Bubble
///         Pipeline Parallelism, 2024, section 3.1, tries in all combinations
struct plan_rules {
  static constexpr long any_time = LONG_MAX / 4;
  static constexpr int any_ahead = 1 << 20;

  bool backward_first = false;  ///< B before F where both can run, or whichever is due first
  bool weight_first = false;    ///< a W that fits before an F or B that would overtake
  /// The number of periods by which an F may be due after its rank's next B and yet run before that
  /// B.
  int ahead = any_ahead;
  /// By how much an F or a B that overtakes, and a W, may delay what is due first.
  long overrun = 0, weight_overrun = 0;
  /// F runs only where the rest of the oldest micro-batch has room, too, so that every plan reaches
  /// its end. Otherwise F overtakes only if all that is due before it fits as well.
  bool oldest_fits = false;
};

/// A plan. A micro-batch makes 2 `chunks` visits: F down the chunks, then B back up.
struct plan {
  int chunks;
  long period = 0;    ///< from a micro-batch to the next, in the unit of `gap`
  scratch<long> gap;  ///< by visit: the time from its due time to the due time of the next visit
  plan_rules rules{};

  constexpr explicit plan(int count) : chunks(count), gap(2 * count) {}
  /// What another plan of the problem is made from; see best_few.
  constexpr int extent() const { return chunks; }
  constexpr void assign(plan const& from) {
    for (int visit = 0; visit < 2 * chunks; ++visit) gap.item[visit] = from.gap.item[visit];
    period = from.period;
    rules = from.rules;
  }
};

/// The data that all plans of a problem share, and their simulation.
class planner {
 public:
  static constexpr int parts = 4;  ///< pace() plans in units of 1/4 of the problem's

  constexpr explicit planner(search_problem const& question)
      : problem(question), work(question.ranks), chunks_of(question.chunks),
        needed(question.chunks) {
    int const p = problem.ranks, held = problem.held();
    for (int rank = 0; rank < p; ++rank) {
      long &all = work.item[rank], later = 0;
      for (int index = 0; index < held; ++index) {
        int const chunk = chunks_of.item[rank * held + index] =
            chunk_on(problem.where, p, rank, index);
        chunk_cost const& cost = problem.cost(chunk);
        all += cost.forward + cost.backward_input + cost.backward_weight;
        if (cost.memory.backward_input > later) later = cost.memory.backward_input;
      }
      if (all > most_work) most_work = all;
      for (int index = held - 1; index >= 0; --index) {
        int const chunk = chunks_of.item[rank * held + index];
        needed.item[chunk] = later += problem.cost(chunk).memory.forward;
      }
    }
  }

  /// Whether a micro-batch fits into an empty pipeline.
  constexpr bool possible() const {
    for (int chunk = 0; chunk < problem.chunks; ++chunk)
      if (needed.item[chunk] > problem.room(problem.holder.item[chunk])) return false;
    return true;
  }
  constexpr search_problem const& question() const { return problem; }
  /// The longest W.
  constexpr long weight() const {
    long most = 0;
    for (int chunk = 0; chunk < problem.chunks; ++chunk)
      if (long const w = problem.cost(chunk).backward_weight; w > most) most = w;
    return most;
  }
  /// The time that the busiest rank needs for a micro-batch.
  constexpr long busiest() const { return most_work; }
  /// The work of a rank for all micro-batches.
  constexpr long work_of(int rank) const { return work.item[rank] * problem.micro_batches; }
  /// The time of a visit and of the hop to the next one, without a wait.
  constexpr long natural(int visit) const {
    bool const down = visit < problem.chunks;
    int const chunk = down ? visit : 2 * problem.chunks - 1 - visit;
    chunk_cost const& cost = problem.cost(chunk);
    return down ? cost.forward + problem.down.item[chunk]
                : cost.backward_input + (chunk > 0 ? problem.up.item[chunk - 1] : 0);
  }

  /// The number of passes of a micro-batch over all ranks.
  constexpr int legs() const { return 2 * problem.held(); }
  /// Sets the visits of a leg to `quarters` / 4 of their natural gaps, but for the last one.
  constexpr void pace(plan& x, int leg, int quarters) const {
    int const p = problem.ranks;
    for (int visit = leg * p; visit < (leg + 1) * p; ++visit)
      x.gap.item[visit] = natural(visit) * (visit % p == p - 1 ? parts : quarters);
  }

  /// Simulates a plan and calls run(rank, action, start, end) for every action, in order of
  /// `start`, until it returns false. Returns whether all actions have run: they have not if ranks
  /// wait for each other's memory.
  ///
  /// law:   a rank's memory stays within its limit; plans with rules.oldest_fits reach their end
  /// needs: possible()
  /// cost:  n log p for n actions, times the chunks per rank
  template <class Run>
  constexpr bool play(plan const& x, Run run) const;

 private:
  search_problem const& problem;
  long most_work = 0;
  scratch<long> work;      // by rank: of a micro-batch
  scratch<int> chunks_of;  // the chunks of rank 0, then those of rank 1 ...
  /// By chunk: the free memory that an F requires, so that the oldest micro-batch can always
  /// proceed.
  scratch<long> needed;
};

template <class Run>
constexpr bool planner::play(plan const& x, Run run) const {
  using enum action_kind;
  int const p = problem.ranks, m = problem.micro_batches, chunks = problem.chunks,
            held = chunks / p;
  constexpr int kinds = 3;
  // The due times of the next F and B of each chunk, and the numbers of its F, B and W that are
  // done.
  auto due_forward = scratch<long>(chunks), due_backward = scratch<long>(chunks);
  auto done = scratch<int>(kinds * chunks);
  // By chunk and micro-batch: the arrival of the input.
  auto forward_ready = scratch<long>(chunks * m, LONG_MAX);
  auto backward_ready = scratch<long>(chunks * m, LONG_MAX);
  auto ended = scratch<long>(chunks * m);  // by chunk and micro-batch: the end of B
  auto live = scratch<long>(p);
  auto works = scratch<bool>(p);
  auto ahead_of = scratch<int>(2 * held);  // by chunk of a rank: F and B, see fits_ahead
  event_queue events(p);
  for (int rank = 0; rank < p; ++rank) events.put({0, rank});
  long at = 0;
  for (int visit = 0; visit < 2 * chunks; ++visit) {
    (visit < chunks ? due_forward.item[visit] : due_backward.item[2 * chunks - 1 - visit]) = at;
    at += x.gap.item[visit];
  }
  for (int mb = 0; mb < m; ++mb) forward_ready.item[mb] = 0;
  plan_rules const& rules = x.rules;
  long const ahead = rules.ahead == plan_rules::any_ahead ? 0 : rules.ahead * x.period;

  // Whether an F fits with all that is due before it, if Ws follow their Bs.
  auto const fits_ahead = [&](int rank, long due) {
    int const* const mine = chunks_of.item + rank * held;
    for (int i = 0; i < 2 * held; ++i) ahead_of.item[i] = 0;
    // Memory that waits for its W is taken until then.
    long now = live.item[rank];
    for (int i = 0; i < held; ++i)
      now += long(done.item[kinds * mine[i] + 1] - done.item[kinds * mine[i] + 2]) *
             problem.cost(mine[i]).memory.backward_weight;
    for (;;) {
      int first = -1;
      long least = due + 1;
      for (int i = 0; i < held; ++i) {
        int const c = mine[i], f = ahead_of.item[2 * i], b = ahead_of.item[2 * i + 1];
        if (long const next = due_forward.item[c] + f * x.period;
            done.item[kinds * c] + f < m && next < least)
          least = next, first = 2 * i;
        if (long const next = due_backward.item[c] + b * x.period;
            done.item[kinds * c + 1] + b < done.item[kinds * c] + f && next < least)
          least = next, first = 2 * i + 1;
      }
      if (first < 0) return true;
      ++ahead_of.item[first];
      memory_change const& change = problem.cost(mine[first / 2]).memory;
      now += first % 2 == 0 ? change.forward : change.backward_input;
      if (now > problem.room(rank)) return false;
      if (first % 2 == 1) now += change.backward_weight;
    }
  };

  long left = problem.actions();
  while (!events.empty()) {
    auto const [now, rank] = events.next();
    int const* const mine = chunks_of.item + rank * held;
    long const room = problem.room(rank);

    // The due time of the head, which is due first, and the time until which others may run.
    long head_due = LONG_MAX, next_backward = LONG_MAX, until = LONG_MAX;
    auto const taken_by = [&](int c) {
      memory_change const& change = problem.cost(c).memory;
      return rules.oldest_fits           ? needed.item[c]
             : change.backward_input > 0 ? change.forward + change.backward_input
                                         : change.forward;
    };
    for (int i = 0; i < held; ++i) {
      int const c = mine[i], forwards = done.item[kinds * c], backwards = done.item[kinds * c + 1];
      if (backwards < m && due_backward.item[c] < next_backward)
        next_backward = due_backward.item[c];
      if (rules.oldest_fits) continue;
      bool const has_b = backwards < forwards && due_backward.item[c] < head_due;
      if (has_b) head_due = due_backward.item[c];
      bool const has_f = forwards < m && due_forward.item[c] < head_due;
      if (has_f) head_due = due_forward.item[c];
      if (!has_b && !has_f) continue;
      until = has_f ? forward_ready.item[c * m + forwards] : backward_ready.item[c * m + backwards];
      if (until == LONG_MAX)  // its input has not begun
        until = now + (has_f ? natural(c - 1) : natural(2 * chunks - 2 - c));
      else if (has_f && until <= now && live.item[rank] + taken_by(c) > room)
        until = LONG_MAX;  // it waits for memory
    }
    if (rules.ahead == plan_rules::any_ahead) next_backward = LONG_MAX - ahead;
    auto const in_time = [&](long end, long due, long overrun) {
      return due == head_due || until >= plan_rules::any_time || end <= until + overrun;
    };

    // The candidates: the B and the F that are due first, and the oldest W.
    int b = -1, f = -1, w = -1;
    long b_due = LONG_MAX, f_due = LONG_MAX, w_age = LONG_MAX, soonest = LONG_MAX;
    bool lacks_memory = false;
    for (int i = 0; i < held; ++i) {
      int const c = mine[i];
      int const forwards = done.item[kinds * c], backwards = done.item[kinds * c + 1],
                weights = done.item[kinds * c + 2];
      if (weights < backwards && ended.item[c * m + weights] < w_age) {
        w = c;
        w_age = ended.item[c * m + weights];
      }
      if (backwards < forwards) {
        long const ready = backward_ready.item[c * m + backwards], due = due_backward.item[c];
        if (ready > now)
          soonest = ready < soonest ? ready : soonest;
        else if (due < b_due && in_time(now + problem.cost(c).backward_input, due, rules.overrun))
          b = c, b_due = due;
      }
      if (forwards == m || due_forward.item[c] > next_backward + ahead) continue;
      long const ready = forward_ready.item[c * m + forwards], due = due_forward.item[c];
      bool const fits = live.item[rank] + taken_by(c) <= room;
      if (ready > now) {
        if (fits && ready < soonest) soonest = ready;
      } else if (!fits) {
        lacks_memory |= rules.oldest_fits || due == head_due;
      } else if (due < f_due && in_time(now + problem.cost(c).forward, due, rules.overrun) &&
                 (rules.oldest_fits || due == head_due || fits_ahead(rank, due))) {
        f = c, f_due = due;
      }
    }

    action a{};
    bool const takes_b = b >= 0 && (f < 0 || rules.backward_first || b_due <= f_due),
               takes_f = !takes_b && f >= 0;
    bool const lacks_room =
        takes_b && live.item[rank] + problem.cost(b).memory.backward_input > room;
    if (lacks_room && w < 0 && !rules.oldest_fits) return false;  // no W can make room for it
    bool const makes_room = lacks_room && w >= 0;
    long const limit = rules.oldest_fits ? soonest : until;
    bool const fills_gap =
        w >= 0 && (lacks_memory || limit >= plan_rules::any_time ||
                   now + problem.cost(w).backward_weight <= limit + rules.weight_overrun);
    bool const overtakes = takes_b ? b_due != head_due : f_due != head_due;
    if (makes_room ||
        (fills_gap && ((!takes_b && !takes_f) || (overtakes && !rules.oldest_fits &&
                                                  (rules.weight_first || lacks_memory))))) {
      a = action{backward_weight, w};
    } else if (takes_b) {
      a = action{backward_input, b};
    } else if (takes_f) {
      a = action{forward, f};
    } else {
      works.item[rank] = false;
      events.put({soonest, rank});
      continue;
    }
    a.micro_batch = done.item[kinds * a.chunk + (a.kind == forward          ? 0
                                                 : a.kind == backward_input ? 1
                                                                            : 2)]++;
    long const end = now + problem.time(a);
    if (!run(rank, a, now, end)) return false;
    --left;
    live.item[rank] += problem.cost(a.chunk).memory.of(a.kind);
    works.item[rank] = true;
    events.put({end, rank});
    if (a.kind == backward_weight) continue;

    bool const down = a.kind == forward;
    (down ? due_forward : due_backward).item[a.chunk] += x.period;
    if (!down) ended.item[a.chunk * m + a.micro_batch] = end;
    int const next = down ? a.chunk + 1 : a.chunk - 1;
    if (next == chunks) backward_ready.item[a.chunk * m + a.micro_batch] = end;
    if (next < 0 || next == chunks) continue;
    int const who = problem.holder.item[next];
    (down ? forward_ready : backward_ready).item[next * m + a.micro_batch] =
        end + problem.hop_time(rank, who, down ? a.chunk : next);
    if (!works.item[who]) events.put({now, who});
  }
  return left == 0;
}

}  // namespace pp::detail
