// SPDX-License-Identifier: BSL-1.0
//
// Orders on a V of two chunks per rank, and the choice of the best of several. The families on a V
// are each given by a few orders: which is the fastest depends on the times of F, B, W and hops, so
// all are timed.
#pragma once

#include <climits>
#include <utility>

#include <pipe/schedule/execution.hpp>
#include <pipe/schedule/in_flight.hpp>
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
constexpr v_place before(int ranks, int rank, int visit) {
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

/// Rows of at most `length` items each, on the heap.
template <class T>
class v_rows {
 public:
  constexpr v_rows(int ranks, int length)
      : length_(length), item_(long(ranks) * length), size_(ranks), p_(ranks) {}
  constexpr int ranks() const { return p_; }
  constexpr int size(int rank) const { return size_.item[rank]; }
  constexpr T const& at(int rank, int position) const {
    return item_.item[long(rank) * length_ + position];
  }
  constexpr void push(int rank, T const& item) {
    item_.item[long(rank) * length_ + size_.item[rank]++] = item;
  }
  constexpr void clear() {
    for (int rank = 0; rank < p_; ++rank) size_.item[rank] = 0;
  }

 protected:
  int length_;

 private:
  scratch<T> item_;
  scratch<int> size_;
  int p_;
};

/// An order of F, B and W on a V: a table whose actions take little memory.
class v_order {
 public:
  schedules::placement where = schedules::placement::vee;
  bool trains = true;
  int mini_batch = 0, drift = 0;

  constexpr v_order(int ranks, int micro_batches)
      : length_(6 * micro_batches), rows_(ranks, length_) {}

  template <class Other>
  constexpr auto like() const {
    return v_rows<Other>(ranks(), length_);
  }
  constexpr int ranks() const { return rows_.ranks(); }
  constexpr int size(int rank) const { return rows_.size(rank); }
  constexpr action at(int rank, int position) const {
    packed const& x = rows_.at(rank, position);
    return action{static_cast<action_kind>(x.what % kinds), x.what / kinds, x.micro_batch};
  }
  constexpr void push(int rank, action const& a) {
    rows_.push(rank, packed{static_cast<int>(a.kind) + kinds * a.chunk, a.micro_batch});
  }
  constexpr void clear() { rows_.clear(); }

 private:
  static constexpr int kinds = 4;
  struct packed {
    int what = 0, micro_batch = 0;
  };
  int length_;
  v_rows<packed> rows_;
};

/// The memory of a family on a V: on each rank that of `stages` micro-batches in both chunks after
/// their F, or the problem's limit where that is less.
template <pipeline_problem Problem>
constexpr auto room_of_stages(Problem const& problem, int stages) {
  return [&problem, stages](int rank) {
    long const own = stages * (problem.cost(rank).memory.forward +
                               problem.cost(2 * problem.ranks - 1 - rank).memory.forward);
    return problem.limit > 0 && problem.limit < own ? problem.limit : own;
  };
}

/// How good an order is: memory beyond the room first, then the stage-local span, then the makespan.
struct v_score {
  long excess = LONG_MAX, span = LONG_MAX, makespan = LONG_MAX;

  constexpr bool operator<(v_score const& b) const {
    return excess != b.excess ? excess < b.excess
           : span != b.span   ? span < b.span
                              : makespan < b.makespan;
  }
};
template <pipeline_problem Problem, class Room>
constexpr v_score score_of(Problem const& problem, v_order const& order, Room room) {
  auto score = v_score{0, 0, 0};
  auto first = scratch<long>(problem.ranks, -1), last = scratch<long>(problem.ranks);
  auto timing = execution<Problem, v_order>(problem, order, unbounded_slots{});
  if (!timing.run([&](int rank, long start, long end, long) {
        if (first.item[rank] < 0) first.item[rank] = start;
        last.item[rank] = end;
      }))
    return v_score{};
  for (int rank = 0; rank < problem.ranks; ++rank) {
    long const span = last.item[rank] - first.item[rank],
               over = peak_memory(problem, order, rank) - room(rank);
    if (over > score.excess) score.excess = over;
    if (span > score.span) score.span = span;
    if (last.item[rank] > score.makespan) score.makespan = last.item[rank];
  }
  return score;
}

}  // namespace pp::detail
