// SPDX-License-Identifier: BSL-1.0
//
// An order that changes action by action. After a move only those actions are timed again whose
// times it changes, in an order in which each comes after what it needs; this order changes with
// the moves. A move inside of work without gaps changes little else than the actions that it
// passes.
#pragma once

#include <climits>

#include <pipe/schedule/search/search_order.hpp>

namespace pp::detail {

/// An order under moves, its times, and the longest paths to the end.
class moved_order {
 public:
  /// A move of one action of a rank to another position.
  struct move {
    int rank = 0, from = 0, to = 0;
    int low() const { return from < to ? from : to; }
    int high() const { return from < to ? to : from; }
  };

  explicit moved_order(search_actions const& actions)
      : all_(actions), n_(actions.length), order_(actions), times_(actions),
        position_(actions.count), before_(actions.count), after_(actions.count),
        end_(actions.count + actions.ranks), rest_(actions.count + actions.ranks),
        is_tied_(actions.count + actions.ranks), tied_(actions.count), old_run_(actions.count),
        old_end_(actions.count) {}

  /// Begins with a copy of an order. The result is not possible() if the order deadlocks.
  score start(search_order const& order) {
    order_.assign(order);
    for (int rank = 0; rank < all_.ranks; ++rank) {
      int last = all_.count + rank;
      for (int i = 0; i < n_; last = row(rank)[i++]) place(rank, i, row(rank)[i], last);
      after_.item[last] = all_.count + rank;
      end_.item[all_.count + rank] = all_.begin.item[rank];
      rest_.item[all_.count + rank] = rest_of_rank(rank);
    }
    score const found = times_.play(order_);
    if (!found.possible()) return found;
    for (int x = 0; x < all_.count; ++x) end_.item[x] = times_.end.item[x];
    for (int i = all_.count - 1; i >= 0; --i) rest_.item[run(i)] = rest_now(run(i));
    return found;
  }

  search_order const& order() const { return order_; }
  int const* row(int rank) const { return order_.row(rank); }
  int position(int x) const { return position_.item[x]; }
  long end(int x) const { return end_.item[x]; }
  /// From the start of an action until the worst rank ends, if nothing is delayed.
  long rest(int x) const { return rest_.item[x]; }
  /// The time of a rank.
  long time_of(int rank) const { return end(row(rank)[n_ - 1]) - all_.begin.item[rank]; }
  /// After the end of a rank's last action, the time until which the worst rank lasts.
  long rest_of_rank(int rank) const { return all_.latest - all_.begin.item[rank]; }
  score value() const {
    auto total = score{0, 0};
    for (int rank = 0; rank < all_.ranks; ++rank) total.add(time_of(rank));
    return total;
  }

  /// Moves an action, and times what that changes. Returns the number of turns looked at, or 0 for
  /// a deadlock, after which nothing has changed. Otherwise keep() or take_back() is next.
  ///
  /// needs: the action passes none of its own kind and chunk, and none that one of both reads
  long try_move(move const& m) {
    shift(m);
    moved_ = m;
    long const looked_at = order_turns();
    if (looked_at == 0) {
      shift({m.rank, m.to, m.from});
      return 0;
    }
    return looked_at + time_changes();
  }
  /// Undoes the last move.
  void take_back() {
    for (int i = 0; i < changed_; ++i) end_.item[old_end_.item[i].x] = old_end_.item[i].end;
    for (int i = first_turn_; i <= last_turn_; ++i) take_turn(i, old_run_.item[i]);
    shift({moved_.rank, moved_.to, moved_.from});
  }
  /// Keeps the last move: computes the rests that it changes. Returns the number of turns looked
  /// at.
  long keep() {
    int const* const moved = row(moved_.rank);
    int const first = turn(moved[moved_.high()]);
    int least = turn(moved[moved_.low() > 0 ? moved_.low() - 1 : 0]), i = first;
    for (; i >= least; --i) {
      int const x = run(i);
      long const now = rest_now(x);
      if (now == rest_.item[x]) continue;
      rest_.item[x] = now;
      if (int const y = before_.item[x]; y < all_.count && turn(y) < least) least = turn(y);
      if (int const y = x + fact(x).input; turn(y) < least) least = turn(y);
    }
    return first - i;
  }

 private:
  search_actions::fact const& fact(int x) const { return all_.of(x); }
  int run(int turn) const { return times_.run.item[turn]; }
  int turn(int x) const { return times_.turn.item[x]; }
  void take_turn(int turn, int x) {
    times_.run.item[turn] = x;
    times_.turn.item[x] = turn;
  }
  void place(int rank, int i, int x, int last) {
    order_.row(rank)[i] = x;
    position_.item[x] = i;
    before_.item[x] = last;
    if (i > 0) after_.item[last] = x;
  }
  void shift(move const& m) {
    int* const row = order_.row(m.rank);
    int const x = row[m.from], low = m.low(), high = m.high();
    int last = low > 0 ? row[low - 1] : all_.count + m.rank;
    int const next = high + 1 < n_ ? row[high + 1] : all_.count + m.rank;
    for (int i = m.from; i < m.to; ++i) row[i] = row[i + 1];
    for (int i = m.from; i > m.to; --i) row[i] = row[i - 1];
    row[m.to] = x;
    for (int i = low; i <= high; last = row[i++]) place(m.rank, i, row[i], last);
    after_.item[last] = next;
    if (next < all_.count) before_.item[next] = last;
  }

  /// Between the turns of the action that has moved and of the one that it passed last: what
  /// depends on the former takes turns behind all others; of a move to an earlier position, the
  /// other way round. Returns the number of turns, or 0 for a deadlock.
  ///
  /// source: Pearce and Kelly, A Dynamic Topological Sort Algorithm for Directed Acyclic Graphs,
  ///         2007
  long order_turns() {
    bool const later = moved_.from < moved_.to;
    int const step = later ? 1 : -1, x = row(moved_.rank)[moved_.to],
              passed = row(moved_.rank)[moved_.to - step], first = turn(x), last = turn(passed);
    int ties = 0;
    bool fits = true;
    for (int i = first; i != last + step && fits; i += step) {
      int const z = run(i);
      if (z != x && !is_tied_.item[z + (later ? fact(z).input : fact(z).output)] &&
          !is_tied_.item[later ? before_.item[z] : after_.item[z]])
        continue;
      fits = z == x || fact(z).rank != moved_.rank;
      is_tied_.item[tied_.item[ties++] = z] = true;
    }
    for (int i = 0; i < ties; ++i) is_tied_.item[tied_.item[i]] = false;
    if (!fits) return 0;
    first_turn_ = later ? first : last;
    last_turn_ = later ? last : first;
    for (int i = first_turn_; i <= last_turn_; ++i) old_run_.item[i] = run(i);
    int to = first, next = 0;
    for (int i = first; i != last + step; i += step)
      if (next < ties && tied_.item[next] == old_run_.item[i]) {
        ++next;
      } else {
        take_turn(to, old_run_.item[i]);
        to += step;
      }
    for (int i = 0; i < ties; ++i, to += step) take_turn(to, tied_.item[i]);
    return last_turn_ - first_turn_ + 1;
  }

  /// Times the actions that have moved, and all whose times change. Returns the number of turns
  /// looked at.
  long time_changes() {
    int const* const moved = row(moved_.rank);
    int const first = turn(moved[moved_.low()]);
    int most = turn(moved[moved_.high() + 1 < n_ ? moved_.high() + 1 : n_ - 1]), i = first;
    changed_ = 0;
    for (; i <= most; ++i) {
      int const x = run(i);
      long const now = end_now(x);
      if (now == end(x)) continue;
      old_end_.item[changed_++] = {x, end(x)};
      end_.item[x] = now;
      if (int const y = after_.item[x]; y < all_.count && turn(y) > most) most = turn(y);
      if (int const y = x + fact(x).output; turn(y) > most) most = turn(y);
    }
    return i - first;
  }
  long end_now(int x) const {
    search_actions::fact const& k = fact(x);
    long const own = end(before_.item[x]), there = end(x + k.input) + k.hop;
    return (there > own ? there : own) + k.time;
  }
  long rest_now(int x) const {
    search_actions::fact const& k = fact(x);
    long const own = rest(after_.item[x]), there = rest(x + k.output) + k.on_way;
    return (there > own ? there : own) + k.time;
  }

  struct earlier_end {
    int x = 0;
    long end = 0;
  };

  search_actions const& all_;
  int n_;  // actions of a rank
  search_order order_;
  order_times times_;            // rank_end is that of start()
  scratch<int> position_;        // by action: its place on its rank
  scratch<int> before_, after_;  // by action: its neighbours on its rank, or count + rank
  scratch<long> end_, rest_;     // by action; then by rank, before its first and behind its last
  scratch<bool> is_tied_;        // by action, as end_: see order_turns
  scratch<int> tied_;
  // For take_back(): the move, the turns and ends before it.
  move moved_;
  scratch<int> old_run_;
  scratch<earlier_end> old_end_;
  int first_turn_ = 0, last_turn_ = -1, changed_ = 0;
};

}  // namespace pp::detail
