// SPDX-License-Identifier: BSL-1.0
//
// Improvement of orders by simulated annealing. One action of a rank moves to another place, the
// order is timed, and the change is kept if the order is not much worse, with a tolerance that
// decreases. Most changes are made where they can help, on the longest path that ends with the
// slowest rank. An action of a stretch of actions on one rank is moved before or behind the rest of
// the stretch.
#pragma once

#include <pipe/schedule/policy.hpp>
#include <pipe/schedule/search/search_score.hpp>

namespace pp::detail {

/// Temporary rows: one list of `T` per rank, each with at most `length` items.
template <class T>
class scratch_rows {
 public:
  constexpr scratch_rows(int ranks, int length)
      : length_(length), item_(ranks * length), size_(ranks) {}
  constexpr int size(int rank) const { return size_.item[rank]; }
  constexpr T const& at(int rank, int position) const {
    return item_.item[rank * length_ + position];
  }
  constexpr void push(int rank, T const& item) {
    item_.item[rank * length_ + size_.item[rank]++] = item;
  }

 private:
  int length_;
  scratch<T> item_;
  scratch<int> size_;
};

/// An order under search. It has the interface of a table that a policy's `fill` needs; a BW
/// becomes a B and a W. Actions are numbers, 3 (chunk M + micro-batch) + kind, with kinds F, B, W.
///
/// needs: replicas(where) == 1; every action pushed once before it is timed
class search_order {
 public:
  placement where;
  bool trains = true;
  int mini_batch = 0;
  int drift = 0;

  template <pipeline_problem Problem>
  constexpr search_order(Problem const& problem, placement place, long limit, objective want)
      : where(place), want_(want), p_(problem.ranks), m_(problem.micro_batches),
        actions_(kinds * problem.chunks * m_), length_(actions_ / p_), limit_(limit),
        row_(actions_), filled_(p_), fact_(actions_), work_(p_), left_(p_), start_(actions_),
        end_(actions_), waiting_(actions_), also_waiting_(p_), next_(p_), awake_(p_), times_(p_) {
    for (int x = 0; x < actions_; ++x) {
      action const a = decoded(x);
      int const from = a.kind == action_kind::forward          ? a.chunk - 1
                       : a.kind == action_kind::backward_input ? a.chunk + 1
                                                               : -1;
      bool const reads = from >= 0 && from < problem.chunks;
      int const rank = rank_of(where, p_, a.chunk);
      fact& f = fact_.item[x];
      f = fact{x / kinds / m_,
               x % kinds,
               rank,
               -1,
               0,
               problem.time(a),
               problem.cost(a.chunk).memory.of(a.kind)};
      work_.item[rank] += f.time;
      if (!reads) continue;
      f.source = x + kinds * m_ * (from - a.chunk);
      f.hop = problem.hop_time(rank_of(where, p_, from), rank, from < a.chunk ? from : a.chunk);
    }
  }

  /// Rows of another type with this table's extents: see static_rows::like.
  template <class Other>
  constexpr auto like() const {
    return scratch_rows<Other>(p_, length_);
  }
  constexpr int ranks() const { return p_; }
  constexpr int size(int rank) const { return filled_.item[rank]; }
  constexpr action at(int rank, int position) const {
    return decoded(row_.item[rank * length_ + position]);
  }
  /// Appends an action; BW becomes a B and a W. Beyond the rank's length it is dropped.
  constexpr void push(int rank, action const& a) {
    int const x = kinds * (a.chunk * m_ + a.micro_batch);
    auto const add = [&](int kind) {
      if (filled_.item[rank] < length_) row_.item[rank * length_ + filled_.item[rank]++] = x + kind;
    };
    if (a.kind == action_kind::forward) add(0);
    if (makes_input_gradient(a.kind)) add(1);
    if (makes_weight_gradient(a.kind)) add(2);
  }
  constexpr void clear() {
    for (int rank = 0; rank < p_; ++rank) filled_.item[rank] = 0;
  }
  /// Copies the rows of another order. needs: both are of the same problem
  constexpr void assign(search_order const& from) {
    for (int i = 0; i < actions_; ++i) row_.item[i] = from.row_.item[i];
    for (int rank = 0; rank < p_; ++rank) filled_.item[rank] = from.filled_.item[rank];
  }

  /// Whether the rank's memory stays within the limit; without a rank: whether all ranks are
  /// complete and stay within the limit.
  constexpr bool fits(int rank) const {
    long live = 0;
    for (int i = rank * length_; i < (rank + 1) * length_; ++i) {
      live += fact_.item[row_.item[i]].memory;
      if (live > limit_) return false;
    }
    return true;
  }
  constexpr bool fits() const {
    for (int rank = 0; rank < p_; ++rank)
      if (filled_.item[rank] < length_ || !fits(rank)) return false;
    return true;
  }

  /// The score of the order. Not possible() if it deadlocks; timing stops early, with the same
  /// result, when some rank is certain to take longer than `most`.
  constexpr score play(long most = LONG_MAX / 2) {
    for (int rank = 0; rank < p_; ++rank) times_.first.item[rank] = -1, times_.last.item[rank] = 0;
    if (want_ != objective::period) return play_step(most);
    // A rank begins its second step when it has ended the first.
    if (!play_step(LONG_MAX / 2).possible()) return score{};
    for (int rank = 0; rank < p_; ++rank) times_.first.item[rank] = times_.last.item[rank];
    return play_step(most);
  }

  /// The effort of `tries` changes of an order of `actions` actions, in simulated actions.
  static constexpr long effort_of(long tries, long actions) {
    return tries * (actions + change_price);
  }
  /// The number of changes that an effort allows.
  static constexpr long tries_of(long effort, long actions) {
    return effort / (actions + change_price);
  }
  /// Tries `tries` changes, or fewer once no rank takes longer than `good_enough`, and keeps the
  /// best order. Returns its score, never worse than before.
  ///
  /// needs: fits(), and play() is possible
  /// cost:  at most `tries` times the number of actions
  constexpr score improve(long tries, long good_enough, search_dice& roll) {
    return improve(tries, good_enough, roll, [](search_order const&) {});
  }
  /// Improves as above, and calls seen(order) now and then with orders that take no longer than any
  /// earlier order.
  template <class Seen>
  constexpr score improve(long tries, long good_enough, search_dice& roll, Seen seen) {
    score now = play(), best = now;
    auto best_row = scratch<int>(actions_);
    auto const remember = [&] {
      for (int i = 0; i < actions_; ++i) best_row.item[i] = row_.item[i];
    };
    remember();
    fine_ = now.worst < 1L << 40 ? 256 : 1;
    long mean_time = 0;
    for (int x = 0; x < actions_; ++x) mean_time += fact_.item[x].time;
    mean_time = (mean_time + actions_ - 1) / actions_;
    auto path = scratch<stretch>(actions_);
    int stretches = 0;
    long next_look = tries;
    for (long left = tries; left > 0 && best.worst > good_enough; --left) {
      if (stretches == 0) stretches = find_path(now.worst, path, roll);
      change const c = pick(path.item[roll.below(stretches)], roll);
      if (c.from == c.to || !move(c.rank, c.from, c.to)) continue;
      long const allowed =
          mean_time * fine_ / 256 * (heat * left / tries) * roll.exponential() / 256;
      score then{};
      if (fits(c.rank))
        then = play(now.worst + (energy(now) - fine_ * now.worst + allowed) / fine_);
      if (then.possible() && energy(then) - energy(now) <= allowed) {
        now = then;
        stretches = 0;
        if (now.worst <= best.worst && left <= next_look) {
          seen(*this);
          next_look = left - pause;
        }
        if (!(now < best)) continue;
        best = now;
        remember();
      } else {
        move(c.rank, c.to, c.from);
      }
    }
    for (int i = 0; i < actions_; ++i) row_.item[i] = best_row.item[i];
    return best;
  }

 private:
  static constexpr int kinds = 3;
  /// The overhead of a change, beside simulating its order.
  static constexpr int change_price = 100;
  /// The mean time of the ranks enters the energy with weight 1 / mean_share.
  static constexpr int mean_share = 5;
  /// The initial temperature: mean allowed growth of the energy, in 1/256 of the mean action.
  static constexpr long heat = 51;
  static constexpr int pause = 20;  ///< minimum number of tries between two calls of `seen`
  /// The maximum distance of a move, or of a move beyond its stretch of the path.
  static constexpr int reach = 5;

  /// The energy of annealing, in parts of a unit: the worst time, and a share of the mean time,
  /// which gives the search a direction where several ranks take the worst time.
  constexpr long energy(score const& s) const {
    return fine_ * s.worst + fine_ * s.sum / (p_ * mean_share);
  }

  /// Constants of an action that play() reads.
  struct fact {
    int chunk = 0, kind = 0, rank = 0;
    int source = -1;  ///< the action of another chunk whose result this action reads, or -1
    long hop = 0, time = 0, memory = 0;
  };
  /// Positions of a rank that run without a gap, the first as soon as its input arrives.
  struct stretch {
    int rank = 0, first = 0, last = 0;
  };
  /// A move of one action of a rank to another position.
  struct change {
    int rank = 0, from = 0, to = 0;
  };

  /// Times a step in which every rank begins at its time in times_.
  constexpr score play_step(long most) {
    for (int x = 0; x < actions_; ++x) end_.item[x] = waiting_.item[x] = -1;
    int count = 0, unfinished = p_;
    for (int rank = p_ - 1; rank >= 0; --rank) {
      next_.item[rank] = 0;
      left_.item[rank] = work_.item[rank];
      awake_.item[count++] = rank;
    }
    while (count > 0) {
      int const rank = awake_.item[--count];
      int& i = next_.item[rank];
      for (; i < length_; ++i) {
        int const x = row_.item[rank * length_ + i];
        fact const& f = fact_.item[x];
        long start = times_.last.item[rank];
        if (f.source >= 0) {
          if (end_.item[f.source] < 0) {
            also_waiting_.item[rank] = waiting_.item[f.source];
            waiting_.item[f.source] = rank;
            break;
          }
          if (long const there = end_.item[f.source] + f.hop; there > start) start = there;
        }
        start_.item[x] = start;
        end_.item[x] = start + f.time;
        times_.add(rank, start, start + f.time);
        left_.item[rank] -= f.time;
        if (times_.of(rank, want_) + left_.item[rank] > most) return score{};
        for (int who = waiting_.item[x]; who >= 0; who = also_waiting_.item[who])
          awake_.item[count++] = who;
      }
      unfinished -= i == length_;
    }
    return unfinished == 0 ? times_.total(p_, want_) : score{};
  }

  constexpr action decoded(int x) const {
    constexpr action_kind kind[kinds] = {action_kind::forward, action_kind::backward_input,
                                         action_kind::backward_weight};
    return action{kind[x % kinds], x / kinds / m_, x / kinds % m_};
  }

  /// The longest path that ends with a rank whose time is `worst`, from its end to its beginning,
  /// as stretches. Returns their number. needs: play()
  constexpr int find_path(long worst, scratch<stretch>& path, search_dice& roll) {
    int rank = 0, equals = 0, count = 0;
    for (int r = 0; r < p_; ++r)
      if (times_.of(r, want_) == worst && roll.below(++equals) == 0) rank = r;
    for (int last = length_ - 1; last >= 0;) {
      int first = last, next_rank = 0, next_last = -1;
      for (;; --first) {
        int const x = row_.item[rank * length_ + first];
        fact const& f = fact_.item[x];
        long const start = start_.item[x];
        bool const in_a_row =
            first > 0 && end_.item[row_.item[rank * length_ + first - 1]] == start;
        bool const handed = f.source >= 0 && end_.item[f.source] + f.hop == start;
        if (handed && fact_.item[f.source].rank != rank && (!in_a_row || roll.below(2) == 0)) {
          next_rank = fact_.item[f.source].rank;
          next_last = position_of(next_rank, f.source);
          break;
        }
        if (!in_a_row) break;
      }
      path.item[count++] = stretch{rank, first, last};
      rank = next_rank;
      last = next_last;
    }
    return count;
  }
  /// The position of an action, by bisection: the actions of a rank start in order; those of zero
  /// duration may start together.
  constexpr int position_of(int rank, int x) const {
    int const* const row = row_.item + rank * length_;
    int low = 0, high = length_ - 1;
    while (low < high) {
      int const middle = (low + high) / 2;
      if (start_.item[row[middle]] < start_.item[x])
        low = middle + 1;
      else
        high = middle;
    }
    while (row[low] != x) ++low;
    return low;
  }

  /// A random change. Three of four move an action of the stretch to its end or its beginning, or
  /// slightly beyond; the others move any action.
  constexpr change pick(stretch const& s, search_dice& roll) const {
    int const which = roll.below(8), inside = s.last - s.first;
    if (which >= 6) {
      int const rank = roll.below(p_), from = roll.below(length_);
      return change{rank, from, clamp(from + roll.below(2 * reach + 1) - reach)};
    }
    if (inside == 0) return change{};
    int const more = which % 3 == 0 ? roll.below(reach + 1) : 0;
    return which < 3 ? change{s.rank, s.first + roll.below(inside), clamp(s.last + more)}
                     : change{s.rank, s.first + 1 + roll.below(inside), clamp(s.first - more)};
  }
  constexpr int clamp(int position) const {
    return position < 0 ? 0 : position < length_ ? position : length_ - 1;
  }

  /// Moves an action to another position on its rank. Actions of the same chunk and kind on the way
  /// keep their order: each takes the place of the next. Returns false, with nothing changed, if an
  /// F would come after its B, or a B after its W.
  constexpr bool move(int rank, int from, int to) {
    int* const row = row_.item + rank * length_;
    int const towards = from < to ? 1 : -1;
    fact const& moved = fact_.item[row[from]];
    for (int i = from, carried = row[from]; i != to;) {
      i += towards;
      fact const& f = fact_.item[row[i]];
      if (f.chunk != moved.chunk) continue;
      if (f.kind == moved.kind)
        carried = row[i];
      else if (f.kind == moved.kind + towards && row[i] == carried + towards)
        return false;
    }
    int carried = row[from];
    for (int i = from; i != to; i += towards) {
      int const x = row[i + towards];
      bool const alike = fact_.item[x].chunk == moved.chunk && fact_.item[x].kind == moved.kind;
      row[i] = alike ? carried : x;
      if (alike) carried = x;
    }
    row[to] = carried;
    return true;
  }

  objective want_;
  int p_, m_, actions_, length_;
  long limit_;
  scratch<int> row_;           // the actions of rank 0, then those of rank 1 ...
  scratch<int> filled_;        // by rank: the number of its actions so far
  scratch<fact> fact_;         // by action
  scratch<long> work_, left_;  // by rank: the total work, and the part that is left
  scratch<long> start_, end_;  // by action; an end of -1: not run yet
  scratch<int> waiting_;       // by action: the last rank that began to wait for it
  scratch<int> also_waiting_;  // by rank: the next one that waits for the same action
  scratch<int> next_, awake_;  // by rank: its next position; a stack of ranks
  rank_times times_;
  long fine_ = 1;  // parts per unit of time in the energy: 256, or 1 where times are large
};

}  // namespace pp::detail
