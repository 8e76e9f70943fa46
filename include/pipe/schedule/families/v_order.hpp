// SPDX-License-Identifier: BSL-1.0
//
// Orders on a V of two chunks per rank, and the choice of the best of several. The families on a V
// are each given by a few orders: which is the fastest depends on the times of F, B, W and hops, so
// all are timed.
#pragma once

#include <climits>

#include <pipe/schedule/policy.hpp>
#include <pipe/schedule/scratch.hpp>

namespace pp::detail {

/// The F and B of a micro-batch on a rank of a V, in the order in which the micro-batch meets them,
/// and the two Ws. Each rank has a chunk on the way down the ranks and a chunk on the way up.
enum v_visit : int { f_down, f_up, b_up, b_down, v_visits, w_up = v_visits, w_down };

/// The chunk of a visit to a rank: the rank's own number, or its mirror image on the way up.
constexpr int chunk_of(int ranks, int rank, int visit) {
  return visit == f_down || visit == b_down || visit == w_down ? rank : 2 * ranks - 1 - rank;
}
constexpr action_kind kind_of(int visit) {
  return visit <= f_up     ? action_kind::forward
         : visit <= b_down ? action_kind::backward_input
                           : action_kind::backward_weight;
}
/// The visit that an action is. needs: F, B or W
constexpr int visit_of(int rank, action const& a) {
  bool const down = a.chunk == rank;
  return a.kind == action_kind::forward          ? (down ? f_down : f_up)
         : a.kind == action_kind::backward_input ? (down ? b_down : b_up)
                                                 : (down ? w_down : w_up);
}
/// The rank and the visit that hand a micro-batch over to a visit; rank -1 for the first F.
struct v_place {
  int rank, visit;
};
constexpr v_place place_before(int ranks, int rank, int visit) {
  int const from = visit % 2 == 0 ? rank - 1 : rank + 1;
  return from >= 0 && from < ranks ? v_place{from, visit}
         : visit > 0               ? v_place{rank, visit - 1}
                                   : v_place{-1, 0};
}
/// The rank and the visit to which a visit hands a micro-batch over; rank -1 for the last B.
constexpr v_place after(int ranks, int rank, int visit) {
  int const to = visit % 2 == 0 ? rank + 1 : rank - 1;
  return to >= 0 && to < ranks ? v_place{to, visit}
         : visit < b_down      ? v_place{rank, visit + 1}
                               : v_place{-1, 0};
}

/// An order of F, B and W on a V: a table whose actions take little memory.
class v_order {
 public:
  schedules::placement where = schedules::placement::vee;
  bool trains = true;
  int mini_batch = 0, drift = 0;

  constexpr v_order(int ranks, int micro_batches)
      : p_(ranks), length_(6 * micro_batches), item_(long(ranks) * length_), size_(ranks) {}

  template <class Other>
  constexpr auto like() const {
    return scratch_rows<Other>(p_, length_);
  }
  constexpr int ranks() const { return p_; }
  constexpr int size(int rank) const { return size_.item[rank]; }
  constexpr action at(int rank, int position) const {
    packed const& x = item_.item[long(rank) * length_ + position];
    return action{static_cast<action_kind>(x.what % kinds), x.what / kinds, x.micro_batch};
  }
  constexpr void push(int rank, action const& a) {
    packed& x = item_.item[long(rank) * length_ + size_.item[rank]++];
    x.what = static_cast<int>(a.kind) + kinds * a.chunk, x.micro_batch = a.micro_batch;
  }
  constexpr void clear() {
    for (int rank = 0; rank < p_; ++rank) size_.item[rank] = 0;
  }

 private:
  static constexpr int kinds = 4;
  struct packed {
    int what = 0, micro_batch = 0;
  };
  int p_, length_;
  scratch<packed> item_;
  scratch<int> size_;
};

/// The memory of a family on a V: on each rank that of `stages` micro-batches in both chunks after
/// their F, or the problem's limit where that is less.
template <pipeline_problem Problem>
constexpr auto room_of_stages(Problem const& problem, int stages) {
  return [&problem, stages](int rank) {
    long const own = stages * (problem.cost(rank).memory.forward +
                               problem.cost(2 * problem.ranks - 1 - rank).memory.forward);
    long const most = memory_limit(problem, rank);
    return most > 0 && most < own ? most : own;
  };
}

/// How good an order is: memory beyond the room first, then the stage-local span, then the
/// makespan.
struct v_score {
  long excess = LONG_MAX, span = LONG_MAX, makespan = LONG_MAX;

  constexpr bool operator<(v_score const& b) const {
    return excess != b.excess ? excess < b.excess
           : span != b.span   ? span < b.span
                              : makespan < b.makespan;
  }
};
/// The score of an order, the worst score for one that deadlocks. As in weave.hpp, few and long
/// statements, because compilers count the steps of a constant evaluation.
///
/// needs: every F, B and W once, each B after its F and each W after its B
template <pipeline_problem Problem, class Room>
constexpr v_score score_of(Problem const& problem, v_order const& order, Room room) {
  using enum action_kind;
  struct place {
    int next = 0, also_waiting = 0;  // 1 + the rank that waits for the same result, or 0
    long clock = 0, first = -1, live = 0;
  };
  int const p = problem.ranks, m = problem.micro_batches, values = problem.chunks * m;
  auto ranks = scratch<place>(p);
  // By chunk and micro-batch, first for F, then for B: 1 + the time at which the action ends, and 1
  // + the last rank that waits for that end; 0 for none.
  auto ended = scratch<long>(2 * values);
  auto waiting = scratch<int>(2 * values), awake = scratch<int>(p);
  int count = 0, unfinished = p;
  while (count < p) awake.item[count] = count, ++count;
  auto score = v_score{-LONG_MAX, 0, 0};
  while (count > 0) {
    int const rank = awake.item[--count], size = order.size(rank);
    long const most = room(rank);
    place& at = ranks.item[rank];
    for (; at.next < size; ++at.next) {
      action const a = order.at(rank, at.next);
      chunk_cost const& cost = problem.cost(a.chunk);
      int const source = a.kind == forward ? a.chunk - 1 : a.chunk + 1,
                made = (a.kind == forward ? 0 : values) + a.micro_batch;
      long start = at.clock, change = cost.memory.backward_weight, time = cost.backward_weight;
      if (a.kind != backward_weight) {
        change = a.kind == forward ? cost.memory.forward : cost.memory.backward_input;
        time = a.kind == forward ? cost.forward : cost.backward_input;
        if (source >= 0 && source < problem.chunks) {
          int const from = source < p ? source : 2 * p - 1 - source;
          long const there = ended.item[made + source * m] - 1 +
                             problem.hop_time(from, rank, a.kind == forward ? source : a.chunk);
          if (ended.item[made + source * m] == 0) {
            at.also_waiting = waiting.item[made + source * m];
            waiting.item[made + source * m] = rank + 1;
            break;
          }
          if (there > start) start = there;
        }
      }
      if (at.first < 0) at.first = start;
      at.clock = start + time;
      if (long const over = at.live + (change > 0 ? change : 0) - most; over > score.excess)
        score.excess = over;
      at.live += change;
      if (a.kind == backward_weight) continue;
      ended.item[made + a.chunk * m] = at.clock + 1;
      for (int who = waiting.item[made + a.chunk * m]; who > 0;
           who = ranks.item[who - 1].also_waiting)
        awake.item[count++] = who - 1;
    }
    if (at.next < size) continue;
    --unfinished;
    if (at.clock - at.first > score.span) score.span = at.clock - at.first;
    if (at.clock > score.makespan) score.makespan = at.clock;
  }
  if (score.excess < 0) score.excess = 0;
  return unfinished == 0 ? score : v_score{};
}

}  // namespace pp::detail
