// SPDX-License-Identifier: BSL-1.0
//
// Improvement of an order by moves on its longest path: tabu search, which leaves a local optimum
// without heat, or simulated annealing, which searches near an order. A move takes one action of a
// rank to another position, mostly out of a stretch of the path, before its first or behind its
// last action. A lower bound judges the move first: the longest path through the actions that it
// shifts, from what is known of all other actions, costs a few additions for each of them. Only
// moves with a good bound are timed. Memory depends on the order of a rank alone, and is checked
// before.
#pragma once

#include <pipe/schedule/search/search_moves.hpp>

namespace pp::detail {

/// Tabu search and annealing of orders of one problem.
template <class = void>
class order_tuner {
 public:
  explicit order_tuner(search_actions const& actions)
      : all_(actions), n_(actions.length), order_(actions), best_(actions),
        live_(actions.count + actions.ranks), path_(actions.count), moved_(actions.length),
        end_(actions.length), tabu_(tabu_entries) {
    for (int x = 0; x < all_.count; ++x) mean_ += fact(x).time;
    mean_ = (mean_ + all_.count - 1) / all_.count;
  }

  /// How an order is improved, and what bounds it.
  struct effort {
    long actions = 0;      ///< to be timed, at most
    long good_enough = 0;  ///< it ends when no rank takes longer
    /// The initial temperature: mean allowed growth of the energy, in 1/256 of the mean action.
    int heat = usual_heat;
    /// Above 0: tabu search. A move is not taken back for this number of moves, or up to twice as
    /// many.
    int tenure = 0;
  };
  static constexpr int usual_heat = 51;

  /// Replaces an order by the best that it finds, and returns that order's score. It gives up as
  /// soon as stops().
  ///
  /// needs: order.fits(), with the micro-batches of each kind and chunk in order
  /// law:   the result is no worse, and fits; an order that deadlocks is left as it is
  template <class Stops>
  score improve(search_order& order, effort const& limit, search_dice& roll, Stops stops) {
    if (!start(order)) return now_;
    best_.assign(order);
    score const best =
        limit.tenure > 0 ? search_by_tabu(limit, roll, stops) : anneal(limit, roll, stops);
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

  // Of tabu search.
  static constexpr int candidates = 40;         ///< of which the best is made
  static constexpr int most_since_best = 3000;  ///< moves, after which it begins again at the best
  static constexpr int rounds_per_look = 64;
  static constexpr long actions_per_path = 50, actions_per_candidate = 8;
  static constexpr int turns_per_action = 3;  ///< that cost as much as one action of `effort`
  static constexpr int tabu_entries = 1 << 16;

  /// Positions of a rank that run without a gap, the first as soon as its input arrives.
  struct stretch {
    int rank = 0, first = 0, last = 0;
  };
  using move = moved_order::move;

  search_actions::fact const& fact(int x) const { return all_.of(x); }
  static long later(long a, long b) { return a > b ? a : b; }

  /// The energy of annealing, in parts of a unit: the worst time, and a share of the mean time,
  /// which gives the search a direction where several ranks take the worst time.
  long energy(score const& s) const {
    return fine_ * s.worst + fine_ * s.sum / 64 * mean_share / all_.ranks;
  }

  /// Begins with an order. False if it deadlocks.
  bool start(search_order const& order) {
    now_ = order_.start(order);
    if (!now_.possible()) return false;
    for (int rank = 0; rank < all_.ranks; ++rank) count_memory(rank, 0, n_);
    has_path_ = false;
    return true;
  }
  /// Simulated annealing. Returns the score of best_.
  template <class Stops>
  score anneal(effort const& limit, search_dice& roll, Stops stops) {
    fine_ = now_.worst < 1L << 40 ? 64 : 1;
    score best = now_;
    long const all_tries = limit.actions / actions_per_try + 1;
    long tries = all_tries, budget = limit.actions;
    while (tries > 0 && budget > 0 && best.worst > limit.good_enough) {
      if (--tries % tries_per_look == 0 && stops()) break;
      if (!has_path_) find_path(roll);
      long const by_tries = tries * 256 / all_tries, by_budget = budget * 256 / limit.actions,
                 left = by_tries < by_budget ? by_tries : by_budget,
                 allowed = mean_ * fine_ * limit.heat / 256 * left / 256 * roll.exponential() / 256;
      move const m = pick(roll);
      if (m.from == m.to || !fits(m) || exceeds(m, now_.worst + allowed / fine_)) continue;
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
    return best;
  }

  /// Tabu search: the best of some moves on the path is made, whether the order becomes better or
  /// worse. For some moves after it, what it has passed does not pass it back, unless that promises
  /// a better order than all before. Returns the score of best_.
  ///
  /// source: Nowicki and Smutnicki, A Fast Taboo Search Algorithm for the Job Shop Problem, 1996;
  ///         moves: Balas and Vazacopoulos, Guided Local Search with Shifting Bottleneck for Job
  ///         Shop Scheduling, 1998
  template <class Stops>
  score search_by_tabu(effort const& limit, search_dice& roll, Stops stops) {
    score best = now_;
    for (int i = 0; i < tabu_entries; ++i) tabu_.item[i] = 0;
    long budget = limit.actions;
    int made = 0, since_best = 0;
    for (int round = 1; budget > 0 && best.worst > limit.good_enough; ++round) {
      if (round % rounds_per_look == 0 && stops()) break;
      if (!has_path_) find_path(roll);
      budget -= actions_per_path + candidates * actions_per_candidate;
      move const m = best_candidate(made, best, roll);
      if (m.from == m.to) continue;
      long const timed = order_.try_move(m);
      if (timed == 0) continue;
      budget -= (timed + order_.keep()) / turns_per_action;
      now_ = order_.value();
      has_path_ = false;
      count_memory(m.rank, m.low(), m.high() + 1);
      ++made;
      int const* const row = order_.row(m.rank);
      int const step = m.from < m.to ? 1 : -1, x = row[m.to],
                until = made + limit.tenure + roll.below(limit.tenure + 1);
      for (int i = m.from; i != m.to; i += step)
        (step > 0 ? kept_until(row[i], x) : kept_until(x, row[i])) = until;
      if (now_ < best) {
        best = now_;
        best_.assign(order_.order());
        since_best = 0;
      } else if (++since_best > most_since_best) {
        start(best_);
        budget -= 2L * all_.count;
        since_best = 0;
      }
    }
    return best;
  }
  /// Of some moves on the path, the one with the least bound, by chance among equal ones; any move
  /// that costs little if the path has none; or no move, if that one is not possible or
  /// costs much.
  move best_candidate(int made, score const& best, search_dice& roll) {
    move chosen;
    long least = LONG_MAX;
    int equals = 0;
    for (int i = 0; i < candidates && stretches_ > 0; ++i) {
      move const m = pick_on_path(roll);
      if (m.from == m.to || !fits(m)) continue;
      long const value = bound(m, least);
      if (value > least) continue;
      if (value >= best.worst && is_tabu(m, made)) continue;
      if (value < least) equals = 0;
      least = value;
      if (roll.below(++equals) == 0) chosen = m;
    }
    if (chosen.from != chosen.to) return chosen;
    move const any = pick(roll);
    return any.from != any.to && fits(any) && !exceeds(any, now_.worst + mean_) ? any : move{};
  }
  /// The number of moves made until which `first` stays before `second`. Few pairs share an entry.
  int& kept_until(int first, int second) {
    unsigned const hash =
        static_cast<unsigned>(first) * 2654435761u ^ static_cast<unsigned>(second) * 2246822507u;
    return tabu_.item[hash / (UINT_MAX / tabu_entries + 1)];
  }
  bool is_tabu(move const& m, int made) {
    int const* const row = order_.row(m.rank);
    int const step = m.from < m.to ? 1 : -1, x = row[m.from];
    for (int i = m.from + step; i != m.to + step; i += step)
      if ((step > 0 ? kept_until(x, row[i]) : kept_until(row[i], x)) > made) return true;
    return false;
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
  /// A lower bound of the worst time after a move, or a time above `most` if that is above it.
  long bound(move const& m, long most) {
    int const* const row = order_.row(m.rank);
    int const low = m.low(), high = m.high(), n = high - low + 1;
    // The action of this rank is shifted, too.
    auto const inside = [&](int x) {
      return order_.position(x) >= low && order_.position(x) <= high;
    };
    long now = low > 0 ? order_.end(row[low - 1]) : all_.begin.item[m.rank];
    for (int i = 0; i < n; ++i) {
      int const x =
          m.from < m.to ? row[i == n - 1 ? low : low + i + 1] : row[i == 0 ? high : low + i - 1];
      search_actions::fact const& f = fact(x);
      if (!f.reads_here || !inside(x + f.input)) now = later(now, order_.end(x + f.input) + f.hop);
      moved_.item[i] = x;
      end_.item[i] = now += f.time;
    }
    long rest = high + 1 < n_ ? order_.rest(row[high + 1]) : order_.rest_of_rank(m.rank), all = 0;
    for (int i = n - 1; i >= 0 && all <= most; --i) {
      int const x = moved_.item[i];
      search_actions::fact const& f = fact(x);
      if (!f.gives_here || !inside(x + f.output))
        rest = later(rest, order_.rest(x + f.output) + f.on_way);
      if (f.weight != 0 && !inside(x + f.weight)) rest = later(rest, order_.rest(x + f.weight));
      all = later(all, end_.item[i] + rest - all_.latest);
      rest += f.time;
    }
    return all;
  }

  bool exceeds(move const& m, long most) { return bound(m, most) > most; }

  /// A longest path that ends with a rank whose time is the worst, from its end to its beginning,
  /// as stretches.
  void find_path(search_dice& roll) {
    int rank = 0, equals = 0;
    stretches_ = 0;
    has_path_ = true;
    for (int r = 0; r < all_.ranks; ++r)
      if (order_.time_of(r) == now_.worst && roll.below(++equals) == 0) rank = r;
    for (int last = n_ - 1; last >= 0;) {
      int const* const row = order_.row(rank);
      int first = last, next_rank = 0, next_last = -1;
      for (long end = order_.end(row[first]);; --first) {
        search_actions::fact const& f = fact(row[first]);
        long const start = end - f.time;
        end = first > 0 ? order_.end(row[first - 1]) : -1;
        bool const in_a_row = end == start;
        if (!f.reads_here && order_.end(row[first] + f.input) + f.hop == start &&
            (!in_a_row || roll.below(2) == 0)) {
          next_rank = f.giver;
          next_last = order_.position(row[first] + f.input);
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
  /// slightly beyond; the others take any action.
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
    return as_far_as_it_can(m);
  }
  /// A random move of an action of a stretch to its end or its beginning, or slightly beyond.
  ///
  /// needs: a stretch
  move pick_on_path(search_dice& roll) const {
    unsigned long long random = roll.bits();
    auto const below = [&](int count) {  // at most four times
      unsigned long long const part = random % 4096 * static_cast<unsigned>(count) / 4096;
      random /= 4096;
      return static_cast<int>(part);
    };
    stretch const& s = path_.item[below(stretches_)];
    int const inside = s.last - s.first, kind = below(2 * 4 * 4 * (reach + 1)),
              depth = inside > depth_within && kind / 8 % 4 != 0 ? depth_within : inside,
              within = 1 + below(depth), beyond = kind / 2 % 4 == 0 ? kind / 32 : 0;
    return as_far_as_it_can(kind % 2 == 0 ? move{s.rank, s.last - within, s.last + beyond}
                                          : move{s.rank, s.first + within, s.first - beyond});
  }
  /// A move that ends before it would pass an action of the same kind and chunk, or one that reads
  /// the other's result. The first action of a rank stays.
  move as_far_as_it_can(move m) const {
    m.to = m.to < 1 ? 1 : m.to > n_ - 1 ? n_ - 1 : m.to;
    if (m.from == 0 || m.from == m.to) return {};
    int const x = order_.row(m.rank)[m.from];
    search_actions::fact const& f = fact(x);
    auto const stay_before = [&](int y) {
      if (int const last = order_.position(y) - 1; last < m.to) m.to = last;
    };
    auto const stay_behind = [&](int y) {
      if (int const first = order_.position(y) + 1; first > m.to) m.to = first;
    };
    auto const is_alike = [&](int y) { return all_.kind_at.item[y] == all_.kind_at.item[x]; };
    if (m.from < m.to) {
      if (x + 1 < all_.count && is_alike(x + 1)) stay_before(x + 1);
      if (f.gives_here) stay_before(x + f.output);
      if (f.weight != 0) stay_before(x + f.weight);
    } else {
      if (x > 0 && is_alike(x - 1)) stay_behind(x - 1);
      if (f.reads_here) stay_behind(x + f.input);
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
  scratch<int> tabu_;   // see kept_until
  long mean_ = 0;       // of an action's time
  long fine_ = 1;       // parts per unit of time in the energy: 64, or 1 where times are large
};

}  // namespace pp::detail
