// SPDX-License-Identifier: BSL-1.0
//
// Improvement of an order by simulated annealing on its longest path. A move takes one action of a
// rank to another position, mostly out of a stretch of the path, before its first or behind its
// last action. A lower bound judges the move first: the longest path through the actions that it
// shifts, from what is known of all other actions, costs a few additions for each of them. Only
// moves with a good bound are timed. Memory depends on the order of a rank alone, and is checked
// before.
#pragma once

#include <pipe/schedule/search/search_moves.hpp>

namespace pp::detail {

/// The annealing of orders of one problem.
class order_tuner {
 public:
  explicit order_tuner(search_actions const& actions)
      : all_(actions), n_(actions.length), order_(actions), best_(actions),
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
    now_ = order_.start(order);
    if (!now_.possible()) return now_;
    for (int rank = 0; rank < all_.ranks; ++rank) count_memory(rank, 0, n_);
    has_path_ = false;
    fine_ = now_.worst < 1L << 40 ? 64 : 1;
    score best = now_;
    best_.assign(order_.order());
    long const all_tries = limit.actions / actions_per_try + 1;
    long tries = all_tries, budget = limit.actions;
    while (tries > 0 && budget > 0 && best.worst > limit.good_enough) {
      if (--tries % tries_per_look == 0 && stops()) break;
      if (!has_path_) find_path(roll);
      long const by_tries = tries * 256 / all_tries, by_budget = budget * 256 / limit.actions,
                 left = by_tries < by_budget ? by_tries : by_budget,
                 allowed = mean_ * fine_ * limit.heat / 256 * left / 256 * roll.exponential() / 256;
      move const m = pick(roll);
      if (m.from == m.to || !fits(m) || bound(m) > now_.worst + allowed / fine_) continue;
      long const timed = order_.try_move(m);
      if (timed == 0) continue;
      budget -= timed;
      score const then = order_.value();
      if (energy(then) > energy(now_) + allowed) {
        order_.take_back();
        continue;
      }
      now_ = then;
      has_path_ = false;
      count_memory(m.rank, m.low(), m.high() + 1);
      budget -= order_.keep();
      if (now_ < best) {
        best = now_;
        best_.assign(order_.order());
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
  using move = moved_order::move;

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
  /// A lower bound of the worst time after a move; beyond all times if the move cannot be.
  long bound(move const& m) {
    int const* const row = order_.row(m.rank);
    int const low = m.low(), high = m.high(), n = high - low + 1;
    for (int i = 0; i < n; ++i)
      moved_.item[i] =
          m.from < m.to ? row[i == n - 1 ? low : low + i + 1] : row[i == 0 ? high : low + i - 1];
    auto const inside = [&](int x) {
      return x >= 0 && fact(x).rank == m.rank && order_.position(x) >= low &&
             order_.position(x) <= high;
    };
    long now = low > 0 ? order_.end(row[low - 1]) : all_.begin.item[m.rank];
    for (int i = 0; i < n; ++i) {
      search_actions::fact const& f = fact(moved_.item[i]);
      if (inside(f.input)) {
        bool before = false;
        for (int k = 0; k < i; ++k) before |= moved_.item[k] == f.input;
        if (!before) return LONG_MAX;
      } else if (f.input >= 0) {
        now = later(now, order_.end(f.input) + f.hop);
      }
      end_.item[i] = now += f.time;
    }
    long rest = high + 1 < n_ ? order_.rest(row[high + 1]) : order_.rest_of_rank(m.rank), most = 0;
    for (int i = n - 1; i >= 0; --i) {
      search_actions::fact const& f = fact(moved_.item[i]);
      if (f.output >= 0 && !inside(f.output)) rest = later(rest, order_.rest(f.output) + f.on_way);
      if (f.weight >= 0 && !inside(f.weight)) rest = later(rest, order_.rest(f.weight));
      most = later(most, end_.item[i] + rest);
      rest += f.time;
    }
    return most - all_.latest;
  }

  /// A longest path that ends with a rank whose time is the worst, from its end to its beginning,
  /// as stretches.
  void find_path(search_dice& roll) {
    int rank = 0, equals = 0;
    stretches_ = 0;
    has_path_ = true;
    for (int r = 0; r < all_.ranks; ++r)
      if (order_.time_of(r) == now_.worst && roll.below(++equals) == 0) rank = r;
    for (int last = n_ - 1; last >= 0;) {
      int first = last, next_rank = 0, next_last = -1;
      for (;; --first) {
        int const x = order_.row(rank)[first], y = fact(x).input;
        long const start = order_.end(x) - fact(x).time;
        bool const in_a_row = first > 0 && order_.end(order_.row(rank)[first - 1]) == start;
        bool const handed = y >= 0 && fact(y).rank != rank && order_.end(y) + fact(x).hop == start;
        if (handed && (!in_a_row || roll.below(2) == 0)) {
          next_rank = fact(y).rank;
          next_last = order_.position(y);
          break;
        }
        if (!in_a_row) break;
      }
      if (first < last) path_.item[stretches_++] = stretch{rank, first, last};
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
    if (which == 7 || stretches_ == 0) {
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
    int const x = row[m.from], kind = x / all_.micro_batches * all_.micro_batches,
              step = m.from < m.to ? 1 : -1;
    for (int i = m.from + step; i != m.to + step; i += step) {
      int const y = row[i];
      if ((y >= kind && y < kind + all_.micro_batches) || fact(x).input == y || fact(y).input == x)
        return {m.rank, m.from, i - step};
    }
    return m;
  }

  search_actions const& all_;
  int n_;  // actions of a rank
  moved_order order_;
  search_order best_;
  score now_{};
  scratch<long> live_;  // by rank and position: the memory before that position
  scratch<stretch> path_;
  int stretches_ = 0;
  bool has_path_ = false;
  scratch<int> moved_;  // the actions that a move shifts, in their new order
  scratch<long> end_;   // and their earliest ends
  long mean_ = 0;       // of an action's time
  long fine_ = 1;       // parts per unit of time in the energy: 64, or 1 where times are large
};

}  // namespace pp::detail
