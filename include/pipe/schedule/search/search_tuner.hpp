// SPDX-License-Identifier: BSL-1.0
//
// Improvement of an order by simulated annealing on its longest path. A move takes one action of a
// rank to another position, mostly out of a stretch of the path, before its first or behind its
// last action. A lower bound judges the move first: the longest path through the actions that it
// shifts, from what is known of all other actions, costs a few additions for each of them. Only
// moves with a good bound are timed. Memory depends on the order of a rank alone, and is checked
// before.
#pragma once

#include <pipe/schedule/search/search_order.hpp>

namespace pp::detail {

/// The annealing of orders of one problem.
class order_tuner {
 public:
  explicit order_tuner(search_actions const& actions)
      : all_(actions), n_(actions.length), order_(actions), best_(actions), a_(actions),
        b_(actions), position_(actions.count), rest_(actions.count), rest_of_rank_(actions.ranks),
        live_(actions.count + actions.ranks), path_(actions.count), moved_(actions.length),
        end_(actions.length) {
    for (int x = 0; x < all_.count; ++x) mean_ += fact(x).time;
    mean_ = (mean_ + all_.count - 1) / all_.count;
  }

  /// What bounds the annealing of an order.
  struct effort {
    long actions = 0;      ///< to be timed, at most
    long good_enough = 0;  ///< it ends when no rank takes longer
    /// The initial temperature: mean allowed growth of the energy, in 1/256 of the mean action.
    int heat = usual_heat;
  };
  static constexpr int usual_heat = 51;

  /// Replaces an order by the best that it finds, and returns that order's score. It gives up as
  /// soon as stops().
  ///
  /// needs: order.fits(), with the micro-batches of each kind and chunk in order
  /// law:   the result is no worse, and fits; an order that deadlocks is left as it is
  template <class Stops>
  score improve(search_order& order, effort const& limit, search_dice& roll, Stops stops) {
    order_.assign(order);
    for (int rank = 0; rank < all_.ranks; ++rank) {
      for (int i = 0; i < n_; ++i) position_.item[order_.row(rank)[i]] = i;
      count_memory(rank, 0, n_);
    }
    now_ = then_->play(order_);
    if (!now_.possible()) return now_;
    accept(now_, -1);
    fine_ = now_.worst < 1L << 40 ? 64 : 1;
    score best = now_;
    best_.assign(order_);
    long const all_tries = limit.actions / actions_per_try + 1;
    long tries = all_tries, budget = limit.actions;
    while (tries > 0 && budget > 0 && best.worst > limit.good_enough) {
      if (--tries % tries_per_look == 0 && stops()) break;
      if (stretches_ == 0) find_path(roll);
      long const by_tries = tries * 256 / all_tries, by_budget = budget * 256 / limit.actions,
                 left = by_tries < by_budget ? by_tries : by_budget,
                 allowed = mean_ * fine_ * limit.heat / 256 * left / 256 * roll.exponential() / 256;
      move const m = pick(roll);
      if (m.from == m.to || !fits(m) || bound(m) > now_.worst + allowed / fine_) continue;
      int const low = m.from < m.to ? m.from : m.to, high = m.from < m.to ? m.to : m.from,
                kept = now_at_->turn.item[order_.row(m.rank)[low]];
      shift(m);
      budget -= all_.count - kept;
      score const then = then_->play(order_, *now_at_, kept);
      if (!then.possible() || energy(then) > energy(now_) + allowed) {
        shift({m.rank, m.to, m.from});
        continue;
      }
      count_memory(m.rank, low, high + 1);
      budget -= accept(then, order_.row(m.rank)[high]);
      if (now_ < best) {
        best = now_;
        best_.assign(order_);
      }
    }
    order.assign(best_);
    return best;
  }
  score improve(search_order& order, effort const& limit, search_dice& roll) {
    return improve(order, limit, roll, [] { return false; });
  }

 private:
  /// The mean time of the ranks enters the energy with this weight, in 1/64.
  static constexpr int mean_share = 3;
  static constexpr long actions_per_try = 20;   ///< the price of a move that is not timed
  static constexpr long tries_per_look = 1024;  ///< from one stops() to the next
  /// The most positions of a move beyond its stretch, and of one within a long stretch.
  static constexpr int reach = 5, depth_within = 24;

  /// Positions of a rank that run without a gap, the first as soon as its input arrives.
  struct stretch {
    int rank = 0, first = 0, last = 0;
  };
  /// A move of one action of a rank to another position.
  struct move {
    int rank = 0, from = 0, to = 0;
  };

  search_actions::fact const& fact(int x) const { return all_.of.item[x]; }
  static long later(long a, long b) { return a > b ? a : b; }

  /// The energy of annealing, in parts of a unit: the worst time, and a share of the mean time,
  /// which gives the search a direction where several ranks take the worst time.
  long energy(score const& s) const {
    return fine_ * s.worst + fine_ * s.sum / 64 * mean_share / all_.ranks;
  }

  void count_memory(int rank, int from, int to) {
    long* const live = live_.item + rank * (n_ + 1);
    for (int i = from; i < to; ++i) live[i + 1] = live[i] + fact(order_.row(rank)[i]).memory;
  }
  /// Whether the rank stays within its memory.
  bool fits(move const& m) const {
    long const* const live = live_.item + m.rank * (n_ + 1);
    bool const later = m.from < m.to;
    long const change = fact(order_.row(m.rank)[m.from]).memory, added = later ? -change : change;
    if (added <= 0) return true;
    int const first = later ? m.from + 1 : m.to, last = later ? m.to : m.from - 1;
    for (int i = first; i <= last; ++i)
      if ((live[i] > live[i + 1] ? live[i] : live[i + 1]) + added > all_.room.item[m.rank])
        return false;
    return true;
  }
  void shift(move const& m) {
    int* const row = order_.row(m.rank);
    int const x = row[m.from];
    for (int i = m.from; i < m.to; ++i) position_.item[row[i] = row[i + 1]] = i;
    for (int i = m.from; i > m.to; --i) position_.item[row[i] = row[i - 1]] = i;
    position_.item[row[m.to] = x] = m.to;
  }

  /// After the end of a rank's last action, the time until which the worst rank lasts.
  long rest_of_rank(int rank) const { return all_.latest - all_.begin.item[rank]; }

  /// A lower bound of the worst time after a move; beyond all times if the move cannot be.
  long bound(move const& m) {
    int const* const row = order_.row(m.rank);
    int const low = m.from < m.to ? m.from : m.to, high = m.from < m.to ? m.to : m.from,
              n = high - low + 1;
    for (int i = 0; i < n; ++i)
      moved_.item[i] =
          m.from < m.to ? row[i == n - 1 ? low : low + i + 1] : row[i == 0 ? high : low + i - 1];
    auto const inside = [&](int x) {
      return x >= 0 && fact(x).rank == m.rank && position_.item[x] >= low &&
             position_.item[x] <= high;
    };
    long now = low > 0 ? now_at_->end.item[row[low - 1]] : all_.begin.item[m.rank];
    for (int i = 0; i < n; ++i) {
      search_actions::fact const& f = fact(moved_.item[i]);
      if (inside(f.input)) {
        bool before = false;
        for (int k = 0; k < i; ++k) before |= moved_.item[k] == f.input;
        if (!before) return LONG_MAX;
      } else if (f.input >= 0) {
        now = later(now, now_at_->end.item[f.input] + f.hop);
      }
      end_.item[i] = now += f.time;
    }
    long rest = high + 1 < n_ ? rest_.item[row[high + 1]] : rest_of_rank(m.rank), most = 0;
    for (int i = n - 1; i >= 0; --i) {
      search_actions::fact const& f = fact(moved_.item[i]);
      if (f.output >= 0 && !inside(f.output)) rest = later(rest, rest_.item[f.output] + f.on_way);
      if (f.weight >= 0 && !inside(f.weight)) rest = later(rest, rest_.item[f.weight]);
      most = later(most, end_.item[i] + rest);
      rest += f.time;
    }
    return most - all_.latest;
  }

  /// Keeps the order whose times `then_` has, and computes the rests of all actions up to `last`,
  /// the last one that has moved, or of all if `last` is negative. Returns their number.
  int accept(score const& s, int last) {
    order_times* const before = now_at_;
    now_at_ = then_;
    then_ = before;
    now_ = s;
    stretches_ = 0;
    int const changed = last < 0 ? all_.count : now_at_->turn.item[last] + 1;
    for (int rank = 0; rank < all_.ranks; ++rank) {
      int const i = last < 0 ? n_ : now_at_->first_from(order_, rank, changed);
      rest_of_rank_.item[rank] = i < n_ ? rest_.item[order_.row(rank)[i]] : rest_of_rank(rank);
    }
    for (int i = changed - 1; i >= 0; --i) {
      int const x = now_at_->run.item[i];
      search_actions::fact const& f = fact(x);
      long rest = rest_of_rank_.item[f.rank];
      if (f.output >= 0) rest = later(rest, rest_.item[f.output] + f.on_way);
      if (f.weight >= 0) rest = later(rest, rest_.item[f.weight]);
      rest_of_rank_.item[f.rank] = rest_.item[x] = rest + f.time;
    }
    return changed;
  }

  /// A longest path that ends with a rank whose time is the worst, from its end to its beginning,
  /// as stretches.
  void find_path(search_dice& roll) {
    long const* const end = now_at_->end.item;
    int rank = 0, equals = 0;
    for (int r = 0; r < all_.ranks; ++r)
      if (now_at_->rank_end.item[r] - all_.begin.item[r] == now_.worst && roll.below(++equals) == 0)
        rank = r;
    for (int last = n_ - 1; last >= 0;) {
      int first = last, next_rank = 0, next_last = -1;
      for (;; --first) {
        int const x = order_.row(rank)[first], y = fact(x).input;
        long const start = end[x] - fact(x).time;
        bool const in_a_row = first > 0 && end[order_.row(rank)[first - 1]] == start;
        bool const handed = y >= 0 && fact(y).rank != rank && end[y] + fact(x).hop == start;
        if (handed && (!in_a_row || roll.below(2) == 0)) {
          next_rank = fact(y).rank;
          next_last = position_.item[y];
          break;
        }
        if (!in_a_row) break;
      }
      path_.item[stretches_++] = stretch{rank, first, last};
      rank = next_rank;
      last = next_last;
    }
  }

  /// A random move. Seven of eight take an action of a stretch to its end or its beginning, or
  /// slightly beyond; the others take any action. A move ends before it would pass an action of the
  /// same kind and chunk, or one that reads the other's result. The first action of a rank stays.
  move pick(search_dice& roll) const {
    int const which = roll.below(8);
    move m;
    if (which == 7) {
      m.rank = roll.below(all_.ranks);
      m.from = roll.below(n_);
      m.to = m.from + roll.below(2 * reach + 1) - reach;
    } else {
      stretch const& s = path_.item[roll.below(stretches_)];
      int const inside = s.last - s.first;
      if (inside == 0) return {};
      int const beyond = roll.below(3) == 0 ? roll.below(reach + 1) : 0,
                depth = inside > depth_within && roll.below(4) != 0 ? depth_within : inside,
                within = 1 + roll.below(depth);
      m = which < 4 ? move{s.rank, s.last - within, s.last + beyond}
                    : move{s.rank, s.first + within, s.first - beyond};
    }
    m.to = m.to < 1 ? 1 : m.to > n_ - 1 ? n_ - 1 : m.to;
    if (m.from == 0 || m.from == m.to) return {};
    int const* const row = order_.row(m.rank);
    int const x = row[m.from], step = m.from < m.to ? 1 : -1;
    for (int i = m.from + step; i != m.to + step; i += step) {
      int const y = row[i];
      if (y / all_.micro_batches == x / all_.micro_batches || fact(x).input == y ||
          fact(y).input == x)
        return {m.rank, m.from, i - step};
    }
    return m;
  }

  search_actions const& all_;
  int n_;  // actions of a rank
  search_order order_, best_;
  order_times a_, b_;
  order_times *now_at_ = &a_, *then_ = &b_;  // of the order, and of the one that is tried
  score now_{};
  scratch<int> position_;  // by action: its place on its rank
  scratch<long> rest_;     // by action: from its start to the end of the worst time, if not delayed
  scratch<long> rest_of_rank_;  // the same, by rank: of the action that accept() has seen last
  scratch<long> live_;          // by rank and position: the memory before that position
  scratch<stretch> path_;
  int stretches_ = 0;
  scratch<int> moved_;  // the actions that a move shifts, in their new order
  scratch<long> end_;   // and their earliest ends
  long mean_ = 0;       // of an action's time
  long fine_ = 1;       // parts per unit of time in the energy: 64, or 1 where times are large
};

}  // namespace pp::detail
