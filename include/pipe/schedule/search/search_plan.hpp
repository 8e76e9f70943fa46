// SPDX-License-Identifier: BSL-1.0
//
// Orders from plans. A plan is the due time of F and B of micro-batch 0 in every chunk; every
// further micro-batch is due one period later, the time that the busiest rank needs for one
// micro-batch. The known families correspond to plans of different pace: the slower micro-batch 0
// travels, the more micro-batches are in flight. A plan is only a priority: simulated with the real
// times and within the memory limit, every plan becomes a valid schedule.
#pragma once

#include <climits>

#include <pipe/schedule/event_queue.hpp>
#include <pipe/schedule/policy.hpp>
#include <pipe/schedule/search/search_score.hpp>

namespace pp::detail {

/// The choices that the zero-bubble paper's greedy method tries in all combinations.
///
/// source: Qi et al., Zero Bubble Pipeline Parallelism, 2024, section 3.1
struct plan_choices {
  bool any_gap = true;          ///< a W fills any gap, or only a gap known to be long enough
  bool backward_first = false;  ///< B before F, or whichever is due first
  /// The number of periods by which an F may be due after its rank's next B and yet run before that
  /// B.
  int ahead = 1;

  static constexpr int any_ahead = 1 << 20;
};

/// A plan. A micro-batch makes 2 `chunks` visits: F down the chunks, then B back up.
struct plan {
  static constexpr int parts = 4;  ///< planned times are in units of 1/4 of the problem's

  int chunks;
  scratch<long> gap;  ///< by visit: the time from its due time to the due time of the next visit
  plan_choices choices{};

  constexpr explicit plan(int count) : chunks(count), gap(2 * count) {}
  constexpr void assign(plan const& from) {
    for (int visit = 0; visit < 2 * chunks; ++visit) gap.item[visit] = from.gap.item[visit];
    choices = from.choices;
  }
};

/// The data that all plans of a problem share, and their simulation.
///
/// needs: replicas(where) == 1
template <pipeline_problem Problem>
struct planner {
  Problem const& problem;
  placement where;
  long limit;              ///< memory limit of a rank
  long period = 0;         ///< in parts
  scratch<long> natural;   ///< by visit: the gap if action and hop run without a wait, in parts
  scratch<int> chunks_of;  ///< the chunks of rank 0, then those of rank 1 ...
  /// By chunk: the free memory that an F requires, so that the oldest micro-batch can always
  /// proceed.
  scratch<long> room;

  constexpr planner(Problem const& question, placement place, long most_memory)
      : problem(question), where(place), limit(most_memory), natural(2 * question.chunks),
        chunks_of(question.chunks), room(question.chunks) {
    int const p = problem.ranks, chunks = problem.chunks;
    for (int rank = 0; rank < p; ++rank) {
      long work = 0, later = 0;
      for (int index = 0; index < chunks / p; ++index)
        if (long const added = problem.cost(chunk_on(where, p, rank, index)).memory.backward_input;
            added > later)
          later = added;
      for (int index = chunks / p - 1; index >= 0; --index) {
        int const chunk = chunk_on(where, p, rank, index);
        chunk_cost const& cost = problem.cost(chunk);
        chunks_of.item[rank * (chunks / p) + index] = chunk;
        work += cost.forward + cost.backward_input + cost.backward_weight;
        room.item[chunk] = later += cost.memory.forward;
      }
      if (plan::parts * work > period) period = plan::parts * work;
    }
    for (int visit = 0; visit < 2 * chunks; ++visit) {
      bool const down = visit < chunks;
      int const chunk = down ? visit : 2 * chunks - 1 - visit, next = down ? chunk + 1 : chunk - 1;
      long time = down ? problem.cost(chunk).forward : problem.cost(chunk).backward_input;
      if (next >= 0 && next < chunks)
        time += problem.hop_time(rank_of(where, p, chunk), rank_of(where, p, next),
                                 down ? chunk : next);
      natural.item[visit] = plan::parts * time;
    }
  }

  /// Whether a micro-batch fits into an empty pipeline.
  constexpr bool possible() const {
    for (int chunk = 0; chunk < problem.chunks; ++chunk)
      if (room.item[chunk] > limit) return false;
    return true;
  }

  /// Sets the visits of a leg, one pass over all ranks, to `quarters` / 4 of their natural gaps.
  constexpr void pace(plan& x, int leg, int quarters) const {
    int const p = problem.ranks;
    for (int visit = leg * p; visit < (leg + 1) * p; ++visit) {
      bool const bends = visit % p == p - 1;
      x.gap.item[visit] = bends ? natural.item[visit] : natural.item[visit] * quarters / 4;
    }
  }

  /// Simulates a plan and calls run(rank, action, start, end) for every action, in order of
  /// `start`.
  ///
  /// law:   a rank's memory stays within `limit`, and every rank reaches its end, since the oldest
  ///        micro-batch always fits
  /// needs: possible()
  /// cost:  n log p for n actions, times the chunks per rank
  template <class Run>
  constexpr void play(plan const& x, Run run) const;
};

template <pipeline_problem Problem>
template <class Run>
constexpr void planner<Problem>::play(plan const& x, Run run) const {
  using enum action_kind;
  int const p = problem.ranks, m = problem.micro_batches, chunks = problem.chunks,
            held = chunks / p;
  constexpr int kinds = 3;
  auto due_forward = scratch<long>(chunks), due_backward = scratch<long>(chunks);  // the next ones
  auto done = scratch<int>(kinds * chunks);  // by chunk: F, B, W
  // By chunk and micro-batch: the arrival of the input.
  auto forward_ready = scratch<long>(chunks * m, LONG_MAX);
  auto backward_ready = scratch<long>(chunks * m, LONG_MAX);
  auto ended = scratch<long>(chunks * m);  // by chunk and micro-batch: the end of B
  auto live = scratch<long>(p);
  auto works = scratch<bool>(p);
  event_queue events(p);
  for (int rank = 0; rank < p; ++rank) events.put({0, rank});
  long at = 0;
  for (int visit = 0; visit < 2 * chunks; ++visit) {
    (visit < chunks ? due_forward.item[visit] : due_backward.item[2 * chunks - 1 - visit]) = at;
    at += x.gap.item[visit];
  }
  for (int mb = 0; mb < m; ++mb) forward_ready.item[mb] = 0;
  long const ahead = x.choices.ahead == plan_choices::any_ahead ? 0 : x.choices.ahead * period;

  while (!events.empty()) {
    auto const [now, rank] = events.next();
    int const* const mine = chunks_of.item + rank * held;
    long next_backward = LONG_MAX;
    for (int i = 0; i < held; ++i)
      if (int const c = mine[i];
          done.item[kinds * c + 1] < m && due_backward.item[c] < next_backward)
        next_backward = due_backward.item[c];
    if (x.choices.ahead == plan_choices::any_ahead) next_backward = LONG_MAX - ahead;

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
        long const ready = backward_ready.item[c * m + backwards];
        if (ready > now) {
          soonest = ready < soonest ? ready : soonest;
        } else if (due_backward.item[c] < b_due) {
          b = c;
          b_due = due_backward.item[c];
        }
      }
      if (forwards == m || due_forward.item[c] > next_backward + ahead) continue;
      long const ready = forward_ready.item[c * m + forwards];
      bool const fits = live.item[rank] + room.item[c] <= limit;
      if (ready > now) {
        if (fits && ready < soonest) soonest = ready;
      } else if (!fits) {
        lacks_memory = true;
      } else if (due_forward.item[c] < f_due) {
        f = c;
        f_due = due_forward.item[c];
      }
    }

    action a{};
    bool const takes_b = b >= 0 && (f < 0 || x.choices.backward_first || b_due <= f_due);
    bool const makes_room =
        takes_b && w >= 0 && live.item[rank] + problem.cost(b).memory.backward_input > limit;
    bool const fills_gap = !takes_b && f < 0 && w >= 0 &&
                           (lacks_memory || x.choices.any_gap || soonest == LONG_MAX ||
                            now + problem.cost(w).backward_weight <= soonest);
    if (makes_room || fills_gap) {
      a = action{backward_weight, w};
    } else if (takes_b) {
      a = action{backward_input, b};
    } else if (f >= 0) {
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
    run(rank, a, now, end);
    live.item[rank] += problem.cost(a.chunk).memory.of(a.kind);
    works.item[rank] = true;
    events.put({end, rank});
    if (a.kind == backward_weight) continue;

    bool const down = a.kind == forward;
    (down ? due_forward : due_backward).item[a.chunk] += period;
    if (!down) ended.item[a.chunk * m + a.micro_batch] = end;
    int const next = down ? a.chunk + 1 : a.chunk - 1;
    if (next == chunks) backward_ready.item[a.chunk * m + a.micro_batch] = end;
    if (next < 0 || next == chunks) continue;
    int const who = rank_of(where, p, next);
    (down ? forward_ready : backward_ready).item[next * m + a.micro_batch] =
        end + problem.hop_time(rank, who, down ? a.chunk : next);
    if (!works.item[who]) events.put({now, who});
  }
}

}  // namespace pp::detail
