// SPDX-License-Identifier: BSL-1.0
//
// Orders from plans. A plan is the due time of F and B of micro-batch 0 in every chunk; every
// further micro-batch is due one period later. The known families correspond to plans of different
// pace: the slower micro-batch 0 travels, the more micro-batches are in flight. A plan is only a
// priority: it is played with the real times and within the memory limit.
#pragma once

#include <climits>
#include <initializer_list>

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
  /// The same number for equal plans, and for no others that a search meets.
  unsigned long long name() const {
    unsigned long long all = 1;
    auto const add = [&](long part) {
      all = (all ^ static_cast<unsigned long long>(part)) * 0xD1342543DE82EF95u;
      all ^= all >> 32;
    };
    for (int visit = 0; visit < 2 * chunks; ++visit) add(gap.item[visit]);
    for (long part :
         {period, rules.overrun, rules.weight_overrun, long(rules.ahead),
          long(rules.backward_first), long(rules.weight_first), long(rules.oldest_fits)})
      add(part);
    return all;
  }
};

/// The data that all plans of a problem share, and their simulation.
class planner {
 public:
  static constexpr int parts = 4;  ///< pace() plans in units of 1/4 of the problem's

  constexpr explicit planner(search_problem const& question)
      : problem(question), needed(question.chunks), visits(2 * question.chunks),
        place_of(2 * question.chunks) {
    int const p = problem.ranks, held = problem.held();
    for (int rank = 0; rank < p; ++rank) {
      long all = 0, later = 0;
      for (int index = 0; index < held; ++index) {
        int const chunk = chunk_on(problem.where, p, rank, index);
        chunk_cost const& cost = problem.cost(chunk);
        all += cost.forward + cost.backward_input + cost.backward_weight;
        if (cost.memory.backward_input > later) later = cost.memory.backward_input;
      }
      if (all > most_work) most_work = all;
      for (int index = held - 1; index >= 0; --index) {
        int const chunk = chunk_on(problem.where, p, rank, index);
        needed.item[chunk] = later += problem.cost(chunk).memory.forward;
        set_visits(2 * (rank * held + index), chunk);
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
  /// What play() asks about a visit.
  struct visit_facts {
    long time = 0, memory = 0;
    long weight_time = 0, weight_memory = 0;  // of B's W
    long taken = 0;                           // the free memory that F requires, with its B
    long way = 0;             // from the start of the visit before until this one can start
    long hop = 0;             // to the next visit
    int chunk = 0, next = 0;  // next: the number of the next visit
  };
  static constexpr long never = LONG_MAX;

  /// The visits of a chunk: B at a place, F at the next one.
  constexpr void set_visits(int place, int chunk) {
    int const last = 2 * problem.chunks - 1;
    chunk_cost const& cost = problem.cost(chunk);
    memory_change const& change = cost.memory;
    visits.item[place] = {cost.backward_input,
                          change.backward_input,
                          cost.backward_weight,
                          change.backward_weight,
                          0,
                          natural(last - chunk - 1),
                          chunk > 0 ? problem.up.item[chunk - 1] : 0,
                          chunk,
                          last - chunk + 1};
    visits.item[place + 1] = {
        cost.forward,
        change.forward,
        0,
        0,
        change.backward_input > 0 ? change.forward + change.backward_input : change.forward,
        chunk > 0 ? natural(chunk - 1) : 0,
        chunk + 1 < problem.chunks ? problem.down.item[chunk] : 0,
        chunk,
        chunk + 1};
    place_of.item[last - chunk] = place;
    place_of.item[chunk] = place + 1;
  }

  search_problem const& problem;
  long most_work = 0;
  /// By chunk: the free memory that an F requires, so that the oldest micro-batch can always
  /// proceed.
  scratch<long> needed;
  // A visit's place: those of rank 0 come first, then those of rank 1 ...; of each chunk B, then F.
  scratch<visit_facts> visits;  // by place
  scratch<int> place_of;        // by visit
};

template <class Run>
constexpr bool planner::play(plan const& x, Run run) const {
  using enum action_kind;
  int const p = problem.ranks, m = problem.micro_batches, all = 2 * problem.chunks, mine = all / p;
  plan_rules const& rules = x.rules;
  // By place: the due time of what is next there, `never` while there is none that is possible, and
  // the time at which its input arrives, `never` while that is not known.
  auto due = scratch<long>(all, never), ready = scratch<long>(all, never);
  // The due time of the next one, possible or not; how many are done; of how many the input's
  // arrival is known; of F: the free memory that it requires.
  auto planned = scratch<long>(all), taken = scratch<long>(all);
  auto done = scratch<int>(all), known = scratch<int>(all);
  // By the place of B: how many Ws are done, and the end of the next one's B.
  auto weights = scratch<int>(all);
  auto age = scratch<long>(all, never);
  // By place and micro-batch: the arrival of the input; the end of B.
  auto arrival = scratch<long>(long(all) * m), ended = scratch<long>(long(all) * m);
  auto live = scratch<long>(p);
  auto works = scratch<bool>(p);
  auto due_ahead = scratch<long>(mine);  // of a rank: see fits_ahead
  auto left_ahead = scratch<int>(mine);
  event_queue events(p);
  for (int rank = 0; rank < p; ++rank) events.put({0, rank});
  long at = 0;
  for (int number = 0; number < all; ++number) {
    int const place = place_of.item[number];
    planned.item[place] = at;
    if (number < problem.chunks) {
      due.item[place] = at;
      taken.item[place] = rules.oldest_fits ? needed.item[number] : visits.item[place].taken;
    }
    at += x.gap.item[number];
  }
  ready.item[place_of.item[0]] = 0;
  known.item[place_of.item[0]] = m;
  bool const is_ahead = rules.ahead != plan_rules::any_ahead;
  long const ahead = is_ahead ? rules.ahead * x.period : 0;

  // Whether an F fits with all that is due before it, if Ws follow their Bs.
  auto const fits_ahead = [&](int rank, long last) {
    int const first = rank * mine;
    // Memory that waits for its W is taken until then.
    long now = live.item[rank];
    for (int i = 0; i < mine; ++i) {
      int const b = first + i / 2 * 2, f = b + 1;
      due_ahead.item[i] = planned.item[first + i];
      left_ahead.item[i] = i % 2 == 0 ? done.item[f] - done.item[b] : m - done.item[f];
      if (i % 2 == 0) now += long(done.item[b] - weights.item[b]) * visits.item[b].weight_memory;
    }
    for (;;) {
      int next = -1;
      long least = last + 1;
      for (int b = 0; b < mine; b += 2)
        for (int i : {b + 1, b})
          if (left_ahead.item[i] > 0 && due_ahead.item[i] < least) least = due_ahead.item[next = i];
      if (next < 0) return true;
      visit_facts const& v = visits.item[first + next];
      now += v.memory;
      if (now > problem.room(rank)) return false;
      now += v.weight_memory;
      due_ahead.item[next] += x.period;
      --left_ahead.item[next];
      if (next % 2 == 1) ++left_ahead.item[next - 1];
    }
  };

  long left = problem.actions();
  while (!events.empty()) {
    auto const [now, rank] = events.next();
    int const first = rank * mine, last = first + mine;
    long const room = problem.room(rank), held = live.item[rank];

    // The due time of the head, which is due first, and the time until which others may run.
    long head_due = never, until = never, latest = never;
    if (!rules.oldest_fits) {
      int head = first;
      for (int i = first + 1; i < last; ++i)
        if (due.item[i] < due.item[head]) head = i;
      head_due = due.item[head];
      if (head_due != never) {
        until = ready.item[head];
        if (until == never)  // its input has not begun
          until = now + visits.item[head].way;
        else if (head % 2 == 1 && until <= now && held + taken.item[head] > room)
          until = never;  // it waits for memory
      }
    }
    // The due time above which no F runs.
    if (is_ahead) {
      for (int b = first; b < last; b += 2)
        if (done.item[b] < m && planned.item[b] < latest) latest = planned.item[b];
      if (latest != never) latest += ahead;
    }
    // The time at which what overtakes must end.
    long const end_by = until >= plan_rules::any_time ? never : until + rules.overrun;

    // The candidates: the B and the F that are due first, and the oldest W.
    int b = -1, f = -1, w = -1;
    long b_due = never, f_due = never, w_age = never, soonest = never;
    bool lacks_memory = false;
    for (int i = first; i < last; i += 2) {
      if (age.item[i] < w_age) w = i, w_age = age.item[i];
      if (long const due_here = due.item[i]; ready.item[i] > now) {
        soonest = ready.item[i] < soonest ? ready.item[i] : soonest;
      } else if (due_here < b_due &&
                 (due_here == head_due || now + visits.item[i].time <= end_by)) {
        b = i, b_due = due_here;
      }
      long const due_here = due.item[i + 1], there = ready.item[i + 1];
      if (due_here > latest) continue;
      bool const fits = held + taken.item[i + 1] <= room;
      if (there > now) {
        if (fits && there < soonest) soonest = there;
      } else if (!fits) {
        lacks_memory |= rules.oldest_fits || due_here == head_due;
      } else if (due_here < f_due &&
                 (due_here == head_due || (now + visits.item[i + 1].time <= end_by &&
                                           (rules.oldest_fits || fits_ahead(rank, due_here))))) {
        f = i + 1, f_due = due_here;
      }
    }

    bool const takes_b = b >= 0 && (f < 0 || rules.backward_first || b_due <= f_due),
               takes_f = !takes_b && f >= 0;
    bool const lacks_room = takes_b && held + visits.item[b].memory > room;
    if (lacks_room && w < 0 && !rules.oldest_fits) return false;  // no W can make room for it
    bool const makes_room = lacks_room && w >= 0;
    long const limit = rules.oldest_fits ? soonest : until;
    bool const fills_gap =
        w >= 0 && (lacks_memory || limit >= plan_rules::any_time ||
                   now + visits.item[w].weight_time <= limit + rules.weight_overrun);
    bool const overtakes = takes_b ? b_due != head_due : f_due != head_due;
    bool const takes_w =
        makes_room ||
        (fills_gap && ((!takes_b && !takes_f) ||
                       (overtakes && !rules.oldest_fits && (rules.weight_first || lacks_memory))));
    if (!takes_w && !takes_b && !takes_f) {
      works.item[rank] = false;
      events.put({soonest, rank});
      continue;
    }
    int const place = takes_w ? w : takes_b ? b : f;
    visit_facts const& v = visits.item[place];
    int& count = (takes_w ? weights : done).item[place];
    int const mb = count++;
    long const end = now + (takes_w ? v.weight_time : v.time);
    action_kind const kind = takes_w ? backward_weight : takes_b ? backward_input : forward;
    if (!run(rank, action{kind, v.chunk, mb}, now, end)) return false;
    --left;
    live.item[rank] += takes_w ? v.weight_memory : v.memory;
    works.item[rank] = true;
    events.put({end, rank});
    if (takes_w) {
      age.item[place] = count < done.item[place] ? ended.item[long(place) * m + count] : never;
      continue;
    }

    planned.item[place] += x.period;
    ready.item[place] = count < known.item[place] ? arrival.item[long(place) * m + count] : never;
    if (takes_b) {
      due.item[place] = count < done.item[place + 1] ? planned.item[place] : never;
      ended.item[long(place) * m + mb] = end;
      if (weights.item[place] == mb) age.item[place] = end;
    } else {
      due.item[place] = count < m ? planned.item[place] : never;
      due.item[place - 1] = planned.item[place - 1];
    }
    if (v.next == all) continue;
    int const next = place_of.item[v.next], who = next / mine;
    if (known.item[next] == done.item[next]) ready.item[next] = end + v.hop;
    arrival.item[long(next) * m + known.item[next]++] = end + v.hop;
    if (!works.item[who]) events.put({now, who});
  }
  return left == 0;
}

}  // namespace pp::detail
