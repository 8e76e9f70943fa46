// SPDX-License-Identifier: BSL-1.0
//
// Building blocks as their authors reorder them. Ws are placed in the free ticks of the repeated
// block, both ends of the step are brought forward, all actions start as early as they can in
// ticks, and the drain is brought forward once more, with the ticks of Ws free. The order that
// results is played at real times.
#pragma once

#include <pipe/schedule/families/block_ticks.hpp>

namespace pp::detail {

/// The ticks of F, B and W of a block that is repeated.
class ticks_with_weights {
 public:
  static constexpr int kinds = block_ticks::kinds, period = block_ticks::period;

  template <class Block>
  constexpr ticks_with_weights(int ranks, int micro_batches, Block block)
      : p_(ranks), m_(micro_batches),
        width_(period * (micro_batches - 1) + last_tick_of(ranks, block) + 1 + 2 * m_),
        cell_(long(p_) * width_, none), live_(long(p_) * width_), tick_(long(p_) * kinds * m_),
        weight_(long(p_) * 2 * m_), backward_(long(p_) * 2 * m_), placed_(p_) {
    for (int rank = 0; rank < p_; ++rank) {
      building_block const b = block(rank);
      int const due[kinds] = {b.forward_down, b.forward_up, b.backward_up, b.backward_down};
      for (int kind = 0; kind < kinds; ++kind)
        for (int mb = 0; mb < m_; ++mb) {
          tick(rank, kind, mb) = due[kind] + period * mb;
          cell(rank, tick(rank, kind, mb)) = kind + (kinds + 1) * mb;
        }
      int owed = 0, live = 0, next = 0;
      for (int s = 0; s < width_; ++s) {
        int& here = cell(rank, s);
        if (here == none && owed > 0)
          here = kinds + (kinds + 1) * next, weight_.item[rank * 2 * m_ + next++] = s, --owed;
        int const kind = here == none ? none : here % (kinds + 1);
        if (kind == 2 || kind == 3) ++owed;
        live += kind == none ? 0 : kind < 2 ? 1 : kind == kinds ? -1 : 0;
        live_.item[rank * width_ + s] = live;
        if (live > most_) most_ = live;
      }
    }
    bring_forward();
    squeeze();
  }

  constexpr int tick_of(int rank, int kind, int mb) const {
    return tick_.item[(rank * kinds + kind) * m_ + mb];
  }
  constexpr int ticks() const { return ticks_; }

 private:
  static constexpr int none = -1;

  constexpr int& cell(int rank, int s) { return cell_.item[rank * width_ + s]; }
  constexpr int& tick(int rank, int kind, int mb) {
    return tick_.item[(rank * kinds + kind) * m_ + mb];
  }

  /// The last tick of what an F or B follows, but for its rank's own order.
  constexpr int input(int rank, int kind, int mb) const {
    int const from = kind % 2 == 0 ? rank - 1 : rank + 1;
    return from >= 0 && from < p_ ? tick_of(from, kind, mb)
           : kind > 0             ? tick_of(rank, kind - 1, mb)
                                  : none;
  }
  /// Moves all actions but those of the steady state to their earliest free tick: the steady state
  /// lasts from the first rank's first B in its first chunk to its last F in that chunk.
  constexpr void bring_forward() {
    enum { warm_up, steady, drain } phase = warm_up;
    for (int s = 0; s < width_; ++s)
      for (int rank = 0; rank < p_; ++rank) {
        int const what = cell(rank, s);
        if (what == none) continue;
        int const kind = what % (kinds + 1), i = what / (kinds + 1);
        if (phase == warm_up && kind == 3 && rank == 0) phase = steady;
        int to = s;
        if (phase == steady) {
          if (kind == 0 && i == m_ - 1) phase = drain;
        } else {
          to = earliest(rank, s, kind, i);
        }
        if (to != s) {
          cell(rank, to) = what, cell(rank, s) = none;
          int const more = kind < 2 ? 1 : kind == kinds ? -1 : 0;
          for (int t = to; t < s; ++t) live_.item[rank * width_ + t] += more;
          (kind == kinds ? weight_.item[rank * 2 * m_ + i] : tick(rank, kind, i)) = to;
        }
        if (kind == 2 || kind == 3) {  // the Bs that have their ticks, in order
          int* const list = backward_.item + rank * 2 * m_;
          int at = placed_.item[rank]++;
          for (; at > 0 && list[at - 1] > to; --at) list[at] = list[at - 1];
          list[at] = to;
        }
      }
  }
  constexpr int earliest(int rank, int s, int kind, int i) const {
    int soonest = kind == kinds ? backward_.item[rank * 2 * m_ + i] : input(rank, kind, i);
    if (i > 0) {
      int const earlier =
          kind == kinds ? weight_.item[rank * 2 * m_ + i - 1] : tick_of(rank, kind, i - 1);
      if (earlier > soonest) soonest = earlier;
    }
    ++soonest;
    if (kind < 2)  // from where on one more chunk fits
      for (int t = s - 1; t >= soonest; --t)
        if (live_.item[rank * width_ + t] >= most_) {
          soonest = t + 1;
          break;
        }
    for (int to = soonest; to < s; ++to)
      if (cell_.item[rank * width_ + to] == none) return to;
    return s;
  }
  /// Starts every action as early as it can, in the order of the ticks.
  constexpr void squeeze() {
    auto clock = scratch<int>(p_);
    for (int s = 0; s < width_; ++s)
      for (int rank = 0; rank < p_; ++rank) {
        int const what = cell(rank, s);
        if (what == none) continue;
        int const kind = what % (kinds + 1), mb = what / (kinds + 1);
        int& now = clock.item[rank];
        if (kind < kinds) {
          if (int const in = input(rank, kind, mb) + 1; in > now) now = in;
          tick(rank, kind, mb) = now;
        }
        if (++now > ticks_ && kind < kinds) ticks_ = now;
      }
  }

  int p_, m_, width_, most_ = 0, ticks_ = 0;
  scratch<int> cell_;      // by rank and tick: kind + (kinds + 1) number, or none; W is kind 4
  scratch<int> live_;      // by rank and tick: chunks in memory after the tick
  scratch<int> tick_;      // by rank, kind and micro-batch
  scratch<int> weight_;    // by rank: the ticks of its Ws
  scratch<int> backward_;  // by rank: the ticks of its Bs that are decided, ascending
  scratch<int> placed_;    // by rank: their number
};

/// Calls use(kind, micro-batch) for the ticks of a rank in order, with kind `none` for a free tick.
/// Before the ticks from `middle` on come `more` further repetitions of a block.
template <class Use>
constexpr void for_each_tick(block_ticks const& ticks, int rank, int middle, int more, Use use) {
  constexpr int period = block_ticks::period, kinds = block_ticks::kinds, none = block_ticks::none;
  auto const walk = [&](int first, int last, int later) {
    for (int s = first; s < last; ++s) {
      int const what = ticks.at(rank, s);
      use(what == none ? none : what % kinds, what / kinds + later);
    }
  };
  walk(0, middle < ticks.ticks() ? middle : ticks.ticks(), 0);
  for (int later = 0; later < more; ++later) walk(middle, middle + period, later);
  walk(middle, ticks.ticks(), more);
}

/// Fills `table` with block(rank) for every rank, as the block's authors reorder it.
///
/// needs:  placement::vee, two chunks per rank
/// source: Qi et al., Pipeline Parallelism with Controllable Memory, 2024, the authors' program for
///         V-Min and V-Half
template <pipeline_problem Problem, action_table Table, class Block>
constexpr void fill_as_published(Problem const& problem, Table& table, Block block) {
  constexpr int period = block_ticks::period, none = block_ticks::none;
  int const p = problem.ranks, m = problem.micro_batches;
  // Further micro-batches only repeat a period of the steady state.
  int const enough = block(0).backward_down / period + p + 8, few = m < enough ? m : enough;
  auto const with_weights = ticks_with_weights(p, few, block);
  auto ticks = block_ticks(p, few, with_weights.ticks(), [&](int rank, int kind, int mb) {
    return with_weights.tick_of(rank, kind, mb);
  });
  // The drain begins with the last F down the ranks behind the first rank's first B down.
  int const last = ticks.tick_of(0, f_down, few - 1), begun = ticks.tick_of(0, b_down, 0);
  for (int rank = 0; rank < p; ++rank)
    if (int const tick = ticks.tick_of(rank, f_down, few - 1); tick >= begun) {
      ticks.advance(tick, ticks.ticks(), rank + 1);
      break;
    }
  for (int rank = 0; rank < p; ++rank) {
    int owed[2]{}, paid[2]{};  // of the chunk on the way up, which comes first, and down
    auto const pay = [&](int i) {
      int const visit = w_up + i;
      table.push(rank, {kind_of(visit), chunk_of(p, rank, visit), paid[i]++});
      --owed[i];
    };
    for_each_tick(ticks, rank, m > few ? last - 2 * period : 0, m - few, [&](int kind, int mb) {
      if (kind == none) {
        if (owed[0] + owed[1] > 0) pay(owed[0] > 0 ? 0 : 1);
        return;
      }
      table.push(rank, {kind_of(kind), chunk_of(p, rank, kind), mb});
      if (kind >= b_up) ++owed[kind - b_up];
    });
    while (owed[0] + owed[1] > 0) pay(owed[0] > 0 ? 0 : 1);
  }
}

}  // namespace pp::detail
