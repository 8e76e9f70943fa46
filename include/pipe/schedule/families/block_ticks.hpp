// SPDX-License-Identifier: BSL-1.0
//
// Building blocks in ticks. The four F and B of a micro-batch on a rank (two chunks each) have
// fixed ticks, and each further micro-batch comes six ticks later. The lifetime of activations, and
// so the peak memory, can be read off the block; ticks that are left free are for Ws.
#pragma once

#include <type_traits>

#include <pipe/schedule/families/v_order.hpp>
#include <pipe/schedule/families/weave.hpp>

namespace pp {

namespace detail {

/// The ticks of F and B of micro-batch 0 on the two chunks of a rank (placement::vee).
///
/// law: all differ modulo 6
struct building_block {
  int forward_down, forward_up, backward_up, backward_down;
};

/// The last tick of a block's F and B on any rank.
template <class Block>
constexpr int last_tick_of(int ranks, Block block) {
  int last = 0;
  for (int rank = 0; rank < ranks; ++rank)
    if (int const down = block(rank).backward_down; down > last) last = down;
  return last;
}

/// The Fs and Bs of all ranks in ticks, for `micro_batches` repetitions of a block. Ws are not
/// placed: a free tick counts as a W if one could run there.
class block_ticks {
 public:
  static constexpr int period = 6, kinds = 4;  ///< F down, F up, B up, B down

  template <class Block>
  constexpr block_ticks(int ranks, int micro_batches, int most_live, Block block)
      : block_ticks(ranks, micro_batches, most_live,
                    period * (micro_batches - 1) + last_tick_of(ranks, block) + 1, 256) {
    for (int rank = 0; rank < p_; ++rank) {
      building_block const b = block(rank);
      int const due[kinds] = {b.forward_down, b.forward_up, b.backward_up, b.backward_down};
      for (int kind = 0; kind < kinds; ++kind)
        for (int mb = 0; mb < m_; ++mb) put(rank, kind + kinds * mb, due[kind] + period * mb);
      walk(rank, 0, ticks_, ticks_, any_number);
    }
  }
  /// due(rank, kind, micro-batch): any ticks, below `ticks`. Actions may move by any number of
  /// ticks, where no rank then has more chunks in memory than a rank has now.
  template <class Due>
    requires std::is_invocable_v<Due, int, int, int>
  constexpr block_ticks(int ranks, int micro_batches, int ticks, Due due)
      : block_ticks(ranks, micro_batches, 0, ticks, ticks) {
    for (int rank = 0; rank < p_; ++rank) {
      for (int kind = 0; kind < kinds; ++kind)
        for (int mb = 0; mb < m_; ++mb) put(rank, kind + kinds * mb, due(rank, kind, mb));
      walk(rank, 0, ticks_, ticks_, any_number);
      for (int s = 0; s < ticks_; ++s)
        if (int const live = state_.item[rank * ticks_ + s] % w; live > most_live_)
          most_live_ = live;
    }
  }

  constexpr int ticks() const { return ticks_; }
  constexpr int ranks() const { return p_; }
  constexpr int tick_of(int rank, int kind, int micro_batch) const {
    return tick_.item[rank * kinds * m_ + kind + kinds * micro_batch];
  }
  /// kind + kinds * micro-batch, or none
  constexpr int at(int rank, int tick) const { return cell_.item[rank * ticks_ + tick]; }
  static constexpr int none = -1;

  /// Moves the actions of the ticks [first, last), of the first tick only those of the ranks from
  /// `from` on, to earlier free ticks where memory allows it.
  ///
  /// law: no F or B runs later than before, and where a rank has more than `most_live` chunks in
  ///      memory, it had as many before
  constexpr void advance(int first, int last, int from = 0) {
    for (int s = first; s < last; ++s)
      for (int rank = s == first ? from : 0; rank < p_; ++rank) {
        int const what = at(rank, s);
        if (what == none) continue;
        int const soonest = ready(rank, what);
        for (int to = soonest < s - reach_ ? s - reach_ : soonest; to < s; ++to)
          if (at(rank, to) == none && move(rank, s, to)) break;
      }
  }

 private:
  /// reach: the largest move of an action, in ticks, which bounds the cost for a thousand ranks
  constexpr block_ticks(int ranks, int micro_batches, int most_live, int ticks, int reach)
      : p_(ranks), m_(micro_batches), most_live_(most_live), reach_(reach), ticks_(ticks),
        cell_(p_ * ticks_, none), tick_(p_ * kinds * m_), state_(p_ * ticks_) {}

  /// The unit of waiting Ws in a state: live chunks + w * Ws that could run.
  static constexpr int w = 1 << 16;

  constexpr void put(int rank, int what, int tick) {
    cell_.item[rank * ticks_ + tick] = what;
    tick_.item[rank * kinds * m_ + what] = tick;
  }

  /// The first tick in which an action can run: after its input, and after the same action of the
  /// previous micro-batch.
  constexpr int ready(int rank, int what) const {
    int const kind = what % kinds, before = kind % 2 == 0 ? rank - 1 : rank + 1;
    int tick = -1;
    if (before >= 0 && before < p_)
      tick = tick_.item[before * kinds * m_ + what];
    else if (kind > 0)
      tick = tick_.item[rank * kinds * m_ + what - 1];
    if (what >= kinds)
      if (int const earlier = tick_.item[rank * kinds * m_ + what - kinds]; earlier > tick)
        tick = earlier;
    return tick + 1;
  }

  static constexpr int any_number = w - 1;

  /// Recomputes the states of the ticks [first, last), up to the first state behind tick `changed`
  /// that stays as it was. Returns the first tick with more than `most` chunks in memory, and more
  /// than before, or none.
  constexpr int walk(int rank, int first, int changed, int last, int most) {
    int const* const cells = cell_.item + rank * ticks_;
    int* const states = state_.item + rank * ticks_;
    int now = first > 0 ? states[first - 1] : 0;
    for (int s = first; s < last; ++s) {
      now += cells[s] == none ? (now < w ? 0 : -1 - w) : cells[s] % kinds < 2 ? 1 : w;
      if (now % w > most && now % w > states[s] % w) return s;
      if (s > changed && now == states[s]) break;
      states[s] = now;
    }
    return none;
  }

  /// Moves an action to an earlier tick. Returns false, with nothing changed, if it would exceed
  /// the memory.
  constexpr bool move(int rank, int from, int to) {
    int* const cells = cell_.item + rank * ticks_;
    int const what = cells[from];
    cells[from] = none;
    cells[to] = what;
    int const full = walk(rank, to, from, ticks_, most_live_);
    if (full != none) {
      cells[from] = what;
      cells[to] = none;
      walk(rank, to, full, full, any_number);
      return false;
    }
    tick_.item[rank * kinds * m_ + what] = to;
    return true;
  }

  int p_, m_, most_live_, reach_, ticks_;
  scratch<int> cell_;   // by rank and tick: the action, or none
  scratch<int> tick_;   // by rank, micro-batch and kind: its tick
  scratch<int> state_;  // by rank and tick: the state after the tick
};

/// Appends the Fs and Bs of `ticks` in their order. Before the ticks from `middle` on come `more`
/// further repetitions of a block.
template <class Table>
constexpr void push_ticks(Table& table, block_ticks const& ticks, int middle, int more) {
  constexpr int period = block_ticks::period, kinds = block_ticks::kinds;
  for (int rank = 0; rank < ticks.ranks(); ++rank) {
    int const down = rank, up = 2 * ticks.ranks() - 1 - rank, chunk[kinds] = {down, up, up, down};
    auto const push = [&](int first, int last, int later) {
      for (int s = first; s < last; ++s) {
        int const what = ticks.at(rank, s);
        if (what == block_ticks::none) continue;
        table.push(rank, {what % kinds <= f_up ? action_kind::forward : action_kind::backward_input,
                          chunk[what % kinds], what / kinds + later});
      }
    };
    push(0, middle < ticks.ticks() ? middle : ticks.ticks(), 0);
    for (int later = 0; later < more; ++later) push(middle, middle + period, later);
    push(middle, ticks.ticks(), more);
  }
}

/// Fills `table` with the Fs and Bs of `ticks` in their order, and with Ws where they fit.
/// limit(rank): as weave's
template <pipeline_problem Problem, action_table Table, class Limit>
constexpr void fill_by_ticks(Problem const& problem, Table& table, block_ticks const& ticks,
                             int middle, int more, Limit limit) {
  auto fixed = table.template like<action>();
  push_ticks(fixed, ticks, middle, more);
  weave(problem, fixed, table, limit, gap_rule::any);
}

/// Appends the Fs and Bs of block(rank) for every rank, moved earlier at both ends of a step. Each
/// rank has at most `stages` micro-batches in both of its chunks.
///
/// source: Qi et al., Pipeline Parallelism with Controllable Memory, 2024: repeating, squeezing,
///         reordering. Here reordering comes first, in ticks, and only before the first rank's
///         first B and after its last F
template <class Table, class Block>
constexpr void push_blocks(int ranks, int micro_batches, Table& table, int stages, Block block) {
  constexpr int period = block_ticks::period;
  int const begun = block(0).backward_down;
  // Few micro-batches suffice for both ends; every period between them is like the next.
  int const both_ends = begun / period + 5,
            few = micro_batches < both_ends ? micro_batches : both_ends;
  auto ticks = block_ticks(ranks, few, 2 * stages, block);
  ticks.advance(0, begun);
  ticks.advance(period * (few - 1) + 1 > begun ? period * (few - 1) + 1 : begun, ticks.ticks());
  push_ticks(table, ticks, begun + period, micro_batches - few);
}

}  // namespace detail

}  // namespace pp
