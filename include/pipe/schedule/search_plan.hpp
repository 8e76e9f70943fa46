// SPDX-License-Identifier: BSL-1.0
//
// Orders from plans. A plan says when the F and B of micro-batch 0 are due in every chunk; every next micro-batch is due one period
// later, the time that the busiest rank works for one. Between equal plans lies all that the known families differ in: the more
// leisurely micro-batch 0 travels, the more others are on their way at once. Played in time, with actions that take as long as they
// take and no more memory than there is, a plan is a schedule, whatever the times; it is only a matter of priority.
#pragma once

#include <climits>

#include <pipe/schedule/event_queue.hpp>
#include <pipe/schedule/policy.hpp>
#include <pipe/schedule/search_score.hpp>

namespace pp {

/// The choices that the zero-bubble paper's greedy tries, all ways.
/// source: Qi et al., Zero Bubble Pipeline Parallelism, 2024, section 3.1
struct plan_choices {
  bool any_gap = true;          ///< a W fills any waiting time, or only one that is known to be long enough
  bool backward_first = false;  ///< B before F, or whichever is due first
  int ahead = 1;                ///< how many periods before the next B of its rank is due an F that is due later may run

  static constexpr int any_ahead = 1 << 20;
};

/// The way of a micro-batch has 2 `chunks` steps, F down the chunks and B back up.
struct plan {
  static constexpr int parts = 4;  ///< of a unit of time: planned times are finer than real ones

  int chunks;
  scratch<long> gap;  ///< from a step's due time to that of the next
  plan_choices choices{};

  constexpr explicit plan(int count) : chunks(count), gap(2 * count) {}
  constexpr void assign(plan const& from) {
    for (int step = 0; step < 2 * chunks; ++step) gap.item[step] = from.gap.item[step];
    choices = from.choices;
  }
};

/// What plans of a problem have in common.
///
/// needs: replicas(where) == 1
template <pipeline_problem Problem>
struct planner {
  Problem const& problem;
  placement where;
  long limit;             ///< of a rank's memory
  long period = 0;        ///< in parts
  scratch<long> natural;  ///< gaps, by step: as long as the action and its hop take, in parts
  scratch<long> room;     ///< by chunk: what an F must find free, so that its rank can always finish the oldest micro-batch

  constexpr planner(Problem const& question, placement place, long most_memory)
      : problem(question), where(place), limit(most_memory), natural(2 * question.chunks), room(question.chunks) {
    int const p = problem.ranks, chunks = problem.chunks;
    for (int rank = 0; rank < p; ++rank) {
      long work = 0, later = 0;
      for (int index = 0; index < chunks / p; ++index)
        if (long const added = problem.cost(chunk_on(where, p, rank, index)).memory.backward_input; added > later)
          later = added;
      for (int index = chunks / p - 1; index >= 0; --index) {
        int const chunk = chunk_on(where, p, rank, index);
        chunk_cost const& cost = problem.cost(chunk);
        work += cost.forward + cost.backward_input + cost.backward_weight;
        room.item[chunk] = later += cost.memory.forward;
      }
      if (plan::parts * work > period) period = plan::parts * work;
    }
    for (int step = 0; step < 2 * chunks; ++step) {
      bool const down = step < chunks;
      int const chunk = down ? step : 2 * chunks - 1 - step, next = down ? chunk + 1 : chunk - 1;
      long time = down ? problem.cost(chunk).forward : problem.cost(chunk).backward_input;
      if (next >= 0 && next < chunks)
        time += problem.hop_time(rank_of(where, p, chunk), rank_of(where, p, next), down ? chunk : next);
      natural.item[step] = plan::parts * time;
    }
  }

  /// Whether a micro-batch finds room when nothing else is there.
  constexpr bool possible() const {
    for (int chunk = 0; chunk < problem.chunks; ++chunk)
      if (room.item[chunk] > limit) return false;
    return true;
  }

  /// The steps from one end of the ranks to the other, at `quarters` of their natural pace.
  constexpr void pace(plan& x, int leg, int quarters) const {
    int const p = problem.ranks;
    for (int step = leg * p; step < (leg + 1) * p; ++step) {
      bool const turns = step % p == p - 1;
      x.gap.item[step] = turns ? natural.item[step] : natural.item[step] * quarters / 4;
    }
  }

  /// Plays a plan and calls run(rank, action, start, end) for every action, in order of `start`.
  ///
  /// law:  a rank's memory stays within `limit`, and everybody gets to the end: the oldest micro-batch always finds room
  /// needs: possible()
  /// cost: n log p for n actions, times the chunks of a rank
  template <class Run>
  constexpr void play(plan const& x, Run run) const;
};

template <pipeline_problem Problem>
template <class Run>
constexpr void planner<Problem>::play(plan const& x, Run run) const {
  using enum action_kind;
  int const p = problem.ranks, m = problem.micro_batches, chunks = problem.chunks, held = chunks / p;
  auto due = scratch<long>(2 * chunks);           // by chunk: the next F and the next B
  auto done = scratch<int>(3 * chunks);           // by chunk: F, B and W
  auto there = scratch<long>(2 * chunks * m, -1);  // by chunk and micro-batch: when F's and B's input has come, or -1
  auto ended = scratch<long>(chunks * m);         // by chunk and micro-batch: B
  auto live = scratch<long>(p);
  auto works = scratch<bool>(p);
  event_queue events(p);
  for (int rank = 0; rank < p; ++rank) events.put({0, rank});
  long at = 0;
  for (int step = 0; step < 2 * chunks; ++step) {
    due.item[step < chunks ? 2 * step : 2 * (2 * chunks - 1 - step) + 1] = at;
    at += x.gap.item[step];
  }
  for (int mb = 0; mb < m; ++mb) there.item[mb] = 0;
  long const ahead = x.choices.ahead == plan_choices::any_ahead ? LONG_MAX / 2 : x.choices.ahead * period;

  while (!events.empty()) {
    auto const [now, rank] = events.take();
    works.item[rank] = false;
    struct option {
      int chunk = -1;
      long due = LONG_MAX;
    };
    option f, b, w;
    bool lacks_memory = false;
    long next_backward = LONG_MAX, soonest = LONG_MAX;
    for (int index = 0; index < held; ++index) {
      int const chunk = chunk_on(where, p, rank, index);
      if (done.item[3 * chunk + 1] < m && due.item[2 * chunk + 1] < next_backward) next_backward = due.item[2 * chunk + 1];
    }
    for (int index = 0; index < held; ++index) {
      int const chunk = chunk_on(where, p, rank, index);
      int const* const d = done.item + 3 * chunk;
      if (d[2] < d[1] && ended.item[chunk * m + d[2]] < w.due) w = option{chunk, ended.item[chunk * m + d[2]]};
      for (bool forwards : {false, true}) {
        if (forwards ? d[0] == m : d[1] == d[0]) continue;
        long const when = there.item[((forwards ? 0 : chunks) + chunk) * m + (forwards ? d[0] : d[1])];
        long const turn = due.item[2 * chunk + (forwards ? 0 : 1)];
        if (when < 0 || (forwards && turn - ahead > next_backward)) continue;
        bool const fits = !forwards || live.item[rank] + room.item[chunk] <= limit;
        option& best = forwards ? f : b;
        if (when > now && fits)
          soonest = when < soonest ? when : soonest;
        else if (when <= now && !fits)
          lacks_memory = true;
        else if (when <= now && turn < best.due)
          best = option{chunk, turn};
      }
    }
    action a{};
    bool const takes_b = b.chunk >= 0 && (f.chunk < 0 || x.choices.backward_first || b.due <= f.due);
    if (takes_b && w.chunk >= 0 && live.item[rank] + problem.cost(b.chunk).memory.backward_input > limit) {
      a = action{backward_weight, w.chunk};
    } else if (takes_b) {
      a = action{backward_input, b.chunk};
    } else if (f.chunk >= 0) {
      a = action{forward, f.chunk};
    } else if (w.chunk >= 0 && (lacks_memory || x.choices.any_gap || soonest == LONG_MAX ||
                                now + problem.cost(w.chunk).backward_weight <= soonest)) {
      a = action{backward_weight, w.chunk};
    } else {
      if (soonest < LONG_MAX) events.put({soonest, rank});
      continue;
    }
    a.micro_batch = done.item[3 * a.chunk + (a.kind == forward ? 0 : a.kind == backward_input ? 1 : 2)]++;
    long const end = now + problem.time(a);
    run(rank, a, now, end);
    live.item[rank] += problem.cost(a.chunk).memory.of(a.kind);
    works.item[rank] = true;
    events.put({end, rank});
    if (a.kind == backward_weight) continue;
    bool const down = a.kind == forward;
    due.item[2 * a.chunk + (down ? 0 : 1)] += period;
    if (!down) ended.item[a.chunk * m + a.micro_batch] = end;
    int const next = down ? a.chunk + 1 : a.chunk - 1;
    if (next == chunks) there.item[(chunks + a.chunk) * m + a.micro_batch] = end;
    if (next < 0 || next == chunks) continue;
    int const who = rank_of(where, p, next);
    there.item[((down ? 0 : chunks) + next) * m + a.micro_batch] =
        end + problem.hop_time(rank, who, down ? a.chunk : next);
    if (!works.item[who]) events.put({now, who});
  }
}

}  // namespace pp
