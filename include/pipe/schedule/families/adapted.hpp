// SPDX-License-Identifier: BSL-1.0
//
// 1F1B whose warm-up is chosen for the times: where ranks or links are unequal, the number of
// forwards that a rank must run ahead is neither that of 1F1B nor twice that. The table is still
// one number per rank, so a few hundred candidates are timed while the program compiles.
#pragma once

#include <climits>

#include <pipe/schedule/policy.hpp>
#include <pipe/schedule/scratch.hpp>

namespace pp {

namespace detail {

/// The numbers of warm-up forwards of 1F1B, one per rank, with the shortest makespan that a search
/// by steps finds.
///
/// law:  numbers do not ascend from rank to rank, so no ranks wait for each other in a circle
/// cost: at most most_trials(p, m) simulations of p m forwards and backwards each
template <pipeline_problem Problem>
class warm_up_search {
 public:
  /// Ranks times micro-batches for which a constant evaluation has room.
  static constexpr long most_cells = 1024;

  constexpr explicit warm_up_search(Problem const& problem)
      : problem_(problem), p_(problem.ranks), m_(problem.micro_batches), best_(p_), tried_(p_),
        most_(p_), forward_(p_), backward_(p_), hop_(p_), hop_back_(p_), clock_(p_),
        arrival_(long(p_ + 1) * m_), trials_(most_trials(p_, m_)) {
    for (int rank = 0; rank < p_; ++rank) {
      int const below = rank == 0 ? m_ - 1 : most_.item[rank - 1], room = room_of(rank);
      most_.item[rank] = room < below ? room : below;
      auto const& cost = problem.cost(rank);
      forward_.item[rank] = cost.forward;
      backward_.item[rank] = cost.backward_input + cost.backward_weight;
      if (rank + 1 == p_) break;
      hop_.item[rank] = problem.hop_time(rank, rank + 1, rank);
      hop_back_.item[rank] = problem.hop_time(rank + 1, rank, rank);
    }
  }

  /// The number of a rank, after run().
  constexpr int ahead(int rank) const { return best_.item[rank]; }

  /// law: no longer than 1F1B, eager 1F1B, and the warm-up that fills the way there and back, each
  ///      cut to what fits into memory
  constexpr void run() {
    for (int times = 1; times <= 2; ++times) {
      for (int rank = 0; rank < p_; ++rank) tried_.item[rank] = times * (p_ - 1 - rank);
      try_first();
    }
    try_way_there_and_back();
    // Longer warm-ups: of the ranks up to one of them, all ranks first.
    for (int step = p_; step > 0 && trials_ > 0; step /= 2)
      for (bool again = true; again && trials_ > 0;) {
        again = false;
        for (int last = p_ - 1; last >= 0; last -= step)
          while (try_change(0, last, 1)) again = true;
        if (step == 1)
          for (int rank = p_ - 1; rank >= 0; --rank)
            while (try_change(rank, rank, 1)) again = true;
      }
    // Shorter ones as long as nothing is lost: they take less memory.
    trials_ += p_ < most_trials(p_, m_) ? p_ : most_trials(p_, m_);
    for (int rank = 0; rank < p_; ++rank)
      while (best_.item[rank] > 0 && try_change(rank, p_ - 1, -1)) {
      }
  }

 private:
  /// So few that a constant evaluation has room for them, where fits_a_constant; the same at run
  /// time, for the same order.
  static constexpr int most_trials(int ranks, int micro_batches) {
    long const cells = long(ranks) * micro_batches,
               number = (cells <= most_cells ? 8 * most_cells : 1L << 24) / cells;
    return static_cast<int>(number < 4 ? 4 : number > 512 ? 512 : number);
  }

  /// The longest warm-up of a rank that the memory limit allows, at most m - 1.
  constexpr int room_of(int rank) const {
    auto const& memory = problem_.cost(rank).memory;
    long const limit = memory_limit(problem_, rank);
    if (limit <= 0 || memory.forward <= 0) return m_ - 1;
    long const in_flight = (limit - memory.at_most(action_kind::backward)) / memory.forward;
    return in_flight < 1 ? 0 : in_flight > m_ ? m_ - 1 : static_cast<int>(in_flight - 1);
  }

  /// As many forwards as the slowest rank has time for on the way to the end and back.
  constexpr void try_way_there_and_back() {
    long slowest = 1, way = 0;
    for (int rank = 0; rank < p_; ++rank)
      if (long const both = forward_.item[rank] + backward_.item[rank]; both > slowest)
        slowest = both;
    for (int rank = p_ - 1; rank >= 0; --rank) {
      long const number = (way + slowest - 1) / slowest;
      tried_.item[rank] = static_cast<int>(number < m_ ? number : m_ - 1);
      if (rank > 0)
        way += forward_.item[rank] + backward_.item[rank] + hop_.item[rank - 1] +
               hop_back_.item[rank - 1];
    }
    try_first();
  }

  /// Tries the numbers of a first order. If they do not fit into memory, also in proportion: ranks
  /// in a row with the same number wait for each other.
  constexpr void try_first() {
    int fits = 1, asked = 1;
    for (int rank = 0; rank < p_; ++rank)
      if (long(most_.item[rank]) * asked < long(tried_.item[rank]) * fits)
        fits = most_.item[rank], asked = tried_.item[rank];
    if (fits < asked) {
      auto whole = scratch<int>(p_);
      for (int rank = 0; rank < p_; ++rank) whole.item[rank] = tried_.item[rank];
      for (int rounding : {0, asked - 1}) {
        for (int rank = 0; rank < p_; ++rank)
          tried_.item[rank] = static_cast<int>((long(whole.item[rank]) * fits + rounding) / asked);
        keep_if_shorter();
      }
      for (int rank = 0; rank < p_; ++rank) tried_.item[rank] = whole.item[rank];
    }
    keep_if_shorter();
  }

  /// Adds `change` to the numbers of some ranks, and keeps the change if the makespan becomes
  /// shorter, or stays as it is with shorter warm-ups.
  constexpr bool try_change(int first, int last, int change) {
    if (trials_ <= 0) return false;
    bool any = false;
    for (int rank = 0; rank < p_; ++rank) {
      tried_.item[rank] = best_.item[rank];
      if (rank >= first && rank <= last && tried_.item[rank] + change >= 0)
        tried_.item[rank] += change;
    }
    cut();
    for (int rank = 0; rank < p_; ++rank) any |= tried_.item[rank] != best_.item[rank];
    if (!any) return false;
    --trials_;
    return keep_if_shorter(change < 0);
  }

  /// Makes numbers fit the memory, and none larger than that of the rank before.
  constexpr void cut() {
    for (int rank = 0; rank < p_; ++rank) {
      int& mine = tried_.item[rank];
      if (mine > most_.item[rank]) mine = most_.item[rank];
      if (rank > 0 && mine > tried_.item[rank - 1]) mine = tried_.item[rank - 1];
    }
  }

  constexpr bool keep_if_shorter(bool or_equal = false) {
    cut();
    long const time = makespan();
    if (time > shortest_ || (time == shortest_ && !or_equal)) return false;
    shortest_ = time;
    for (int rank = 0; rank < p_; ++rank) best_.item[rank] = tried_.item[rank];
    return true;
  }

  /// The makespan of the numbers that are tried: what simulate() finds for their table, in an order
  /// of which these tables allow one for all. After all F of a micro-batch each rank runs the
  /// backward that follows this F, the last rank first.
  constexpr long makespan() {
    for (int rank = 0; rank < p_; ++rank) clock_.item[rank] = 0;
    for (int mb = 0; mb < m_; ++mb) {
      long there = 0;
      for (int rank = 0; rank < p_; ++rank) {
        long& clock = clock_.item[rank];
        clock = (there > clock ? there : clock) + forward_.item[rank];
        there = clock + hop_.item[rank];
      }
      for (int rank = p_ - 1; rank >= 0; --rank)
        if (int const j = mb - tried_.item[rank]; j >= 0) run_backward(rank, j);
    }
    long longest = 0;
    for (int rank = p_ - 1; rank >= 0; --rank) {
      for (int j = m_ - tried_.item[rank]; j < m_; ++j) run_backward(rank, j);
      if (clock_.item[rank] > longest) longest = clock_.item[rank];
    }
    return longest;
  }
  constexpr void run_backward(int rank, int mb) {
    long const there = arrival_.item[long(rank + 1) * m_ + mb];
    long& clock = clock_.item[rank];
    clock = (there > clock ? there : clock) + backward_.item[rank];
    arrival_.item[long(rank) * m_ + mb] = clock + (rank > 0 ? hop_back_.item[rank - 1] : 0);
  }

  Problem const& problem_;
  int p_, m_;
  scratch<int> best_, tried_, most_;  // by rank
  // By rank: the time of F, of BW, of the hop to the next rank and of the hop back from there.
  scratch<long> forward_, backward_, hop_, hop_back_;
  scratch<long> clock_;    // by rank
  scratch<long> arrival_;  // by rank and micro-batch: of the gradient at the rank before
  int trials_;
  long shortest_ = LONG_MAX;
};

}  // namespace detail

/// 1F1B with a warm-up for unequal ranks and links: the search keeps the numbers of forwards ahead
/// with the shortest makespan, and of those small ones. The problem's memory limit, if there is
/// one, bounds them.
///
/// law:    the makespan is at most that of 1F1B, and of eager 1F1B, where those are within the
///         limit; with equal times and no hops the table is that of 1F1B
/// source: HARP, 2025 (arXiv 2509.24859): 1F1B with an adapted warm-up, for unequal devices
struct AdaptedOneFOneB {
  static constexpr char const* name = "adapted-1f1b";
  static constexpr schedules::placement where = schedules::placement::straight;
  static constexpr int chunks_per_rank = 1;
  static constexpr bool splits_backward = false;
  static constexpr bool trains = true;
  static constexpr bool limits_memory = true;

  /// Whether a constant evaluation has room for the trials.
  static constexpr bool fits_a_constant(int ranks, int micro_batches) {
    return ranks <= 64 &&
           long(ranks) * micro_batches <= detail::warm_up_search<schedules::problem<>>::most_cells;
  }
  template <schedules::pipeline_problem Problem, detail::action_table Table>
  static constexpr void fill(Problem const& problem, Table& table) {
    using enum schedules::action_kind;
    int const m = problem.micro_batches;
    auto search = detail::warm_up_search<Problem>(problem);
    search.run();
    for (int rank = 0; rank < problem.ranks; ++rank) {
      int next = 0;
      while (next < m && next < search.ahead(rank)) table.push(rank, {forward, rank, next++});
      for (int mb = 0; mb < m; ++mb) {
        if (next < m) table.push(rank, {forward, rank, next++});
        table.push(rank, {backward, rank, mb});
      }
    }
  }
};

}  // namespace pp
