// SPDX-License-Identifier: BSL-1.0
//
// An order that changes action by action. After a move only those actions are timed again whose
// times it changes, in an order in which each comes after what it needs; this order changes with
// the moves. A move inside of work without gaps changes little else than the actions that it
// passes.
#pragma once

#include <bit>

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
        position_(actions.count), rest_(actions.count), due_(actions.count / bits + 1),
        is_tied_(actions.count), tied_(actions.count), old_run_(actions.count),
        old_end_(actions.count) {}

  /// Begins with a copy of an order. The result is not possible() if the order deadlocks.
  score start(search_order const& order) {
    order_.assign(order);
    for (int rank = 0; rank < all_.ranks; ++rank)
      for (int i = 0; i < n_; ++i) position_.item[row(rank)[i]] = i;
    score const found = times_.play(order_);
    for (int i = all_.count - 1; i >= 0 && found.possible(); --i)
      rest_.item[run(i)] = rest_now(run(i));
    return found;
  }

  search_order const& order() const { return order_; }
  int const* row(int rank) const { return order_.row(rank); }
  int position(int x) const { return position_.item[x]; }
  long end(int x) const { return times_.end.item[x]; }
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

  /// Moves an action, and times what that changes. Returns the number of actions looked at, or 0
  /// for a deadlock, after which nothing has changed. Otherwise keep() or take_back() is next.
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
    for (int i = 0; i < changed_; ++i) times_.end.item[old_end_.item[i].x] = old_end_.item[i].end;
    for (int i = first_turn_; i <= last_turn_; ++i) take_turn(i, old_run_.item[i]);
    shift({moved_.rank, moved_.to, moved_.from});
  }
  /// Keeps the last move: computes the rests that it changes. Returns their number.
  long keep() {
    int const* const moved = row(moved_.rank);
    for (int i = moved_.low() > 0 ? moved_.low() - 1 : 0; i <= moved_.high(); ++i)
      add_due(moved[i]);
    long timed = 0;
    for (int word = turn(moved[moved_.high()]) / bits; due_count_ > 0; --word)
      while (due_.item[word] != 0) {
        int const at = bits - 1 - std::countl_zero(due_.item[word]), x = run(word * bits + at);
        due_.item[word] ^= 1ull << at;
        --due_count_, ++timed;
        long const now = rest_now(x);
        if (now == rest_.item[x]) continue;
        rest_.item[x] = now;
        add_due(before(x));
        if (is_handed(fact(x).input, x)) add_due(fact(x).input);
      }
    return timed;
  }

 private:
  static constexpr int none = -1, bits = 64;

  search_actions::fact const& fact(int x) const { return all_.of.item[x]; }
  int run(int turn) const { return times_.run.item[turn]; }
  int turn(int x) const { return times_.turn.item[x]; }
  void take_turn(int turn, int x) {
    times_.run.item[turn] = x;
    times_.turn.item[x] = turn;
  }
  int before(int x) const {
    int const at = position(x);
    return at > 0 ? row(fact(x).rank)[at - 1] : none;
  }
  int after(int x) const {
    int const at = position(x) + 1;
    return at < n_ ? row(fact(x).rank)[at] : none;
  }
  /// Whether an action is one of another rank than x. What a rank hands to itself is in order.
  bool is_handed(int y, int x) const { return y >= 0 && fact(y).rank != fact(x).rank; }
  void shift(move const& m) {
    int* const row = order_.row(m.rank);
    int const x = row[m.from];
    for (int i = m.from; i < m.to; ++i) position_.item[row[i] = row[i + 1]] = i;
    for (int i = m.from; i > m.to; --i) position_.item[row[i] = row[i - 1]] = i;
    position_.item[row[m.to] = x] = m.to;
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
    auto const tied = [&](int y) { return y >= 0 && is_tied_.item[y]; };
    int ties = 0;
    bool fits = true;
    for (int i = first; i != last + step && fits; i += step) {
      int const z = run(i);
      if (z != x && !tied(later ? fact(z).input : fact(z).output) &&
          !tied(later ? before(z) : after(z)))
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

  void add_due(int x) {
    if (x < 0) return;
    unsigned long long& word = due_.item[turn(x) / bits];
    unsigned long long const bit = 1ull << turn(x) % bits;
    due_count_ += (word & bit) == 0;
    word |= bit;
  }
  /// Times the actions that have moved, and all whose times change. Returns their number.
  long time_changes() {
    int const* const moved = row(moved_.rank);
    for (int i = moved_.low(); i <= moved_.high() + 1 && i < n_; ++i) add_due(moved[i]);
    changed_ = 0;
    long timed = 0;
    for (int word = turn(moved[moved_.low()]) / bits; due_count_ > 0; ++word)
      while (due_.item[word] != 0) {
        int const x = run(word * bits + std::countr_zero(due_.item[word]));
        due_.item[word] &= due_.item[word] - 1;
        --due_count_, ++timed;
        long const now = end_now(x);
        if (now == end(x)) continue;
        old_end_.item[changed_++] = {x, end(x)};
        times_.end.item[x] = now;
        add_due(after(x));
        if (is_handed(fact(x).output, x)) add_due(fact(x).output);
      }
    return timed;
  }
  long end_now(int x) const {
    search_actions::fact const& f = fact(x);
    int const y = before(x);
    long now = y >= 0 ? end(y) : all_.begin.item[f.rank];
    if (f.input >= 0 && end(f.input) + f.hop > now) now = end(f.input) + f.hop;
    return now + f.time;
  }
  long rest_now(int x) const {
    search_actions::fact const& f = fact(x);
    int const y = after(x);
    long now = y >= 0 ? rest(y) : rest_of_rank(f.rank);
    if (f.output >= 0 && rest(f.output) + f.on_way > now) now = rest(f.output) + f.on_way;
    return now + f.time;
  }

  struct earlier_end {
    int x = 0;
    long end = 0;
  };

  search_actions const& all_;
  int n_;  // actions of a rank
  search_order order_;
  order_times times_;                // rank_end is that of start()
  scratch<int> position_;            // by action: its place on its rank
  scratch<long> rest_;               // by action
  scratch<unsigned long long> due_;  // by turn: whether the action is to be timed, in bits
  int due_count_ = 0;
  scratch<bool> is_tied_;  // by action: see order_turns
  scratch<int> tied_;
  // For take_back(): the move, the turns and ends before it.
  move moved_;
  scratch<int> old_run_;
  scratch<earlier_end> old_end_;
  int first_turn_ = 0, last_turn_ = -1, changed_ = 0;
};

}  // namespace pp::detail
