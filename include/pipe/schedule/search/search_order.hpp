// SPDX-License-Identifier: BSL-1.0
//
// Orders under search, and their times.
#pragma once

#include <pipe/schedule/policy.hpp>
#include <pipe/schedule/search/search_problem.hpp>
#include <pipe/schedule/search/search_score.hpp>

namespace pp::detail {

/// The actions of a problem as numbers, (3 chunk + kind) M + micro-batch with kinds F, B, W, and
/// what the search asks about each.
struct search_actions {
  static constexpr int kinds = 3;
  static constexpr long never = LONG_MIN / 2;
  /// What all micro-batches of a chunk and kind have in common. Other actions are given by what
  /// their numbers are larger; 0: none.
  struct fact {
    long time = 0;
    long memory = 0;  ///< its change, see memory_change
    /// From the end of `input` until the action can start, and from its end until `output` can;
    /// `never` without an input, an output.
    long hop = never, on_way = never;
    int input = 0;  ///< the action whose result this one reads
    /// The actions that read this one's result: F or B of the next chunk, and W.
    int output = 0, weight = 0;
    int rank = 0;
    int giver = 0;                                ///< the rank of `input`
    bool reads_here = false, gives_here = false;  ///< whether `input`, `output` is on this rank
  };

  int ranks, micro_batches, held;
  int count, length;  ///< actions of all ranks, and of one
  placement where;
  scratch<fact> facts;   ///< by chunk and kind
  scratch<int> kind_at;  ///< by action: its index in `facts`
  scratch<long> room;    ///< by rank: its memory limit
  /// By rank: the time at which it begins, from which its time counts.
  scratch<long> begin;
  long latest = 0;     ///< of `begin`
  scratch<long> work;  ///< by rank: the time of its actions

  constexpr explicit search_actions(search_problem const& problem)
      : ranks(problem.ranks), micro_batches(problem.micro_batches), held(problem.held()),
        count(static_cast<int>(problem.actions())), length(count / ranks), where(problem.where),
        facts(kinds * problem.chunks), kind_at(count), room(ranks), begin(ranks), work(ranks) {
    for (int rank = 0; rank < ranks; ++rank) room.item[rank] = problem.room(rank);
    // The first action of a rank is F of its first chunk; those are the chunks 0 .. P-1.
    if (problem.want != objective::makespan)
      for (int chunk = 1; chunk < ranks; ++chunk)
        latest = begin.item[problem.holder.item[chunk]] =
            latest + problem.cost(chunk - 1).forward + problem.down.item[chunk - 1];
    int const last = problem.chunks - 1;
    for (int chunk = 0; chunk <= last; ++chunk)
      for (int kind = 0; kind < kinds; ++kind) {
        int const index = chunk * kinds + kind;
        fact& f = facts.item[index];
        f.time = problem.time({kind_of(kind), chunk, 0});
        f.memory = problem.cost(chunk).memory.of(kind_of(kind));
        f.rank = problem.holder.item[chunk];
        work.item[f.rank] += f.time * micro_batches;
        for (int mb = 0; mb < micro_batches; ++mb) kind_at.item[number(kind, chunk, mb)] = index;
      }
    for (int chunk = 0; chunk <= last; ++chunk) {
      int const f = chunk * kinds, b = f + 1, w = f + 2;
      if (chunk < last) connect(f, f + kinds, problem.down.item[chunk]);
      if (chunk > 0) connect(b, b - kinds, problem.up.item[chunk - 1]);
      if (chunk == last) connect(f, b, 0);
      facts.item[b].weight = micro_batches;
      facts.item[w].input = -micro_batches;
      facts.item[w].hop = 0;
      facts.item[w].giver = facts.item[w].rank;
      facts.item[w].reads_here = true;
    }
  }

  constexpr fact const& of(int x) const { return facts.item[kind_at.item[x]]; }

  /// Ranks begin when they ended a step before: the largest of their times is then an upper bound
  /// of the period, and not above the bound before.
  constexpr void begin_after(scratch<long> const& end) {
    long earliest = LONG_MAX;
    latest = 0;
    for (int rank = 0; rank < ranks; ++rank)
      if (end.item[rank] < earliest) earliest = end.item[rank];
    for (int rank = 0; rank < ranks; ++rank) {
      begin.item[rank] = end.item[rank] - earliest;
      if (begin.item[rank] > latest) latest = begin.item[rank];
    }
  }

  static constexpr action_kind kind_of(int kind) {
    return kind == 0   ? action_kind::forward
           : kind == 1 ? action_kind::backward_input
                       : action_kind::backward_weight;
  }
  constexpr int number(int kind, int chunk, int micro_batch) const {
    return (chunk * kinds + kind) * micro_batches + micro_batch;
  }
  constexpr action named(int x) const {
    int const which = x / micro_batches;
    return action{kind_of(which % kinds), which / kinds, x % micro_batches};
  }

 private:
  constexpr void connect(int from, int to, long hop) {
    fact &maker = facts.item[from], &reader = facts.item[to];
    maker.output = (to - from) * micro_batches;
    reader.input = -maker.output;
    maker.on_way = reader.hop = hop;
    reader.giver = maker.rank;
    maker.gives_here = reader.reads_here = maker.rank == reader.rank;
  }
};

/// An order under search. It has the interface of a table that a policy's `fill` needs; a BW
/// becomes a B and a W.
class search_order {
 public:
  placement where;
  bool trains = true;
  int mini_batch = 0;
  int drift = 0;

  /// needs: `actions` outlives the order
  constexpr explicit search_order(search_actions const& actions)
      : where(actions.where), actions_(actions), row_(actions.count), filled_(actions.ranks) {}

  /// Rows of another type with this table's extents: see static_rows::like.
  template <class Other>
  constexpr auto like() const {
    return scratch_rows<Other>(actions_.ranks, actions_.length);
  }
  constexpr search_actions const& actions() const { return actions_; }
  /// What another order of the problem is made from; see best_few.
  constexpr search_actions const& extent() const { return actions_; }
  constexpr int ranks() const { return actions_.ranks; }
  constexpr int size(int rank) const { return filled_.item[rank]; }
  constexpr action at(int rank, int position) const { return actions_.named(row(rank)[position]); }
  constexpr int const* row(int rank) const { return row_.item + rank * actions_.length; }
  constexpr int* row(int rank) { return row_.item + rank * actions_.length; }

  /// Appends an action; BW becomes a B and a W. Beyond the rank's length it is dropped.
  constexpr void push(int rank, action const& a) {
    auto const add = [&](int kind) {
      push_number(rank, actions_.number(kind, a.chunk, a.micro_batch));
    };
    if (a.kind == action_kind::forward) add(0);
    if (makes_input_gradient(a.kind)) add(1);
    if (makes_weight_gradient(a.kind)) add(2);
  }
  constexpr void push_number(int rank, int x) {
    if (filled_.item[rank] < actions_.length) row(rank)[filled_.item[rank]++] = x;
  }
  constexpr void clear() {
    for (int rank = 0; rank < actions_.ranks; ++rank) filled_.item[rank] = 0;
  }
  /// Copies the rows of another order. needs: both are of the same problem
  constexpr void assign(search_order const& from) {
    for (int i = 0; i < actions_.count; ++i) row_.item[i] = from.row_.item[i];
    for (int rank = 0; rank < actions_.ranks; ++rank) filled_.item[rank] = from.filled_.item[rank];
  }

  /// Whether all ranks are complete and stay within their memory.
  constexpr bool fits() const {
    for (int rank = 0; rank < actions_.ranks; ++rank) {
      if (filled_.item[rank] < actions_.length) return false;
      long live = 0;
      for (int i = 0; i < actions_.length; ++i) {
        live += actions_.of(row(rank)[i]).memory;
        if (live > actions_.room.item[rank]) return false;
      }
    }
    return true;
  }

 private:
  search_actions const& actions_;
  scratch<int> row_;     // the actions of rank 0, then those of rank 1 ...
  scratch<int> filled_;  // by rank: the number of its actions so far
};

/// The times of an order: every action starts as soon as its rank and its input are ready.
class order_times {
 public:
  scratch<long> end;       ///< by action
  scratch<int> run;        ///< the actions in an order in which each comes after what it needs
  scratch<int> turn;       ///< by action: its place in `run`
  scratch<long> rank_end;  ///< by rank

  constexpr explicit order_times(search_actions const& actions)
      : end(actions.count), run(actions.count), turn(actions.count), rank_end(actions.ranks),
        waiting_(actions.count, none), also_waiting_(actions.ranks), next_(actions.ranks),
        awake_(actions.ranks), idle_(actions.ranks) {}

  /// Times an order. The result is not possible() if the order deadlocks.
  ///
  /// needs: the order is complete
  /// cost:  linear in the number of actions
  constexpr score play(search_order const& order) { return play(order, LONG_MAX); }
  /// Times an order; the result is also not possible() if a rank is certain to take longer than
  /// `most`.
  constexpr score play(search_order const& order, long most) {
    search_actions const& all = order.actions();
    for (int x = 0; x < all.count; ++x) end.item[x] = none;
    for (int rank = 0; rank < all.ranks; ++rank) {
      next_.item[rank] = 0;
      rank_end.item[rank] = all.begin.item[rank];
      idle_.item[rank] = 0;
    }
    int count = 0, ready = 0;
    for (int rank = all.ranks - 1; rank >= 0; --rank) awake_.item[ready++] = rank;
    auto total = score{0, 0};
    while (ready > 0) {
      int const rank = awake_.item[--ready];
      int const* const row = order.row(rank);
      int i = next_.item[rank];
      long now = rank_end.item[rank], idle = idle_.item[rank];
      for (; i < all.length; ++i) {
        int const x = row[i];
        search_actions::fact const& f = all.of(x);
        if (f.input != 0) {
          long const there = end.item[x + f.input];
          if (there < 0) {
            also_waiting_.item[rank] = waiting_.item[x + f.input];
            waiting_.item[x + f.input] = rank;
            break;
          }
          if (there + f.hop > now) {
            idle += there + f.hop - now;
            now = there + f.hop;
          }
        }
        end.item[x] = now += f.time;
        turn.item[x] = count;
        run.item[count++] = x;
        if (waiting_.item[x] >= 0) {
          for (int who = waiting_.item[x]; who >= 0; who = also_waiting_.item[who])
            awake_.item[ready++] = who;
          waiting_.item[x] = none;
        }
      }
      next_.item[rank] = i;
      rank_end.item[rank] = now;
      if (i == all.length) total.add(now - all.begin.item[rank]);
      if (idle > most - all.work.item[rank]) break;
      idle_.item[rank] = idle;
    }
    if (count == all.count) return total;
    for (int x = 0; x < all.count; ++x) waiting_.item[x] = none;
    return score{};
  }

 private:
  static constexpr int none = -1;

  scratch<int> waiting_;       // by action: the last rank that waits for it
  scratch<int> also_waiting_;  // by rank: the next one that waits for the same action
  scratch<int> next_, awake_;  // by rank: its next position; a stack of ranks
  scratch<long> idle_;         // by rank
};

}  // namespace pp::detail
