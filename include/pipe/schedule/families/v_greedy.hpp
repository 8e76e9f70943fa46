// SPDX-License-Identifier: BSL-1.0
//
// The greedy order of a V. After a warm-up every rank runs a B and an F in turn, those of a
// micro-batch that has come further first, and Ws fill the gaps. Whether a W may also fill a gap
// that is shorter than the W, before an F and before the first B of a micro-batch on a rank, are
// two choices; the best of the four depends on the times.
#pragma once

#include <pipe/schedule/families/v_order.hpp>

namespace pp::detail {

/// Where a W may fill a gap that is shorter than the W, other than before the second B of a
/// micro-batch.
struct v_greedy_kind {
  bool before_forward = false, before_first_backward = false;
};

/// Runs of the greedy order, one after the other. A rank may be idle for as long as the rank that
/// is idle for the longest time. The idle time of each rank in a run is approved for the next run,
/// in which a W fills what would be more, until a run is no better than the run before.
///
/// limit(rank): the memory of a rank
template <pipeline_problem Problem, class Limit>
class v_greedy {
 public:
  constexpr v_greedy(Problem const& problem, v_greedy_kind kind, Limit limit)
      : problem_(problem), kind_(kind), limit_(limit), p_(problem.ranks), m_(problem.micro_batches),
        rank_(p_), end_(long(p_) * v_visits * m_), row_(long(p_) * 6 * m_),
        best_(long(p_) * 6 * m_), owed_(long(p_) * 2 * m_), is_down_(p_) {}

  /// Appends the order to `table`. Returns false, with nothing appended, if the limit is too small
  /// for the rules: they need about 2P chunks.
  template <action_table Table>
  constexpr bool fill(Table& table) {
    long least = LONG_MAX;
    while (once()) {
      if (most_idle_ >= least) break;
      bool const again = least == LONG_MAX || most_idle_ > 0;
      least = most_idle_;
      for (long i = 0; i < long(p_) * 6 * m_; ++i) best_.item[i] = row_.item[i];
      most_approved_ = most_idle_;
      for (int r = 0; r < p_; ++r) rank_.item[r].approved = rank_.item[r].idle;
      if (!again) break;
    }
    if (least == LONG_MAX) return false;
    for (int r = 0; r < p_; ++r)
      for (int i = 0; i < 6 * m_; ++i) {
        int const x = best_.item[long(r) * 6 * m_ + i], visit = x % (v_visits + 2);
        table.push(r, action{kind_of(visit), chunk_of(p_, r, visit), x / (v_visits + 2)});
      }
    return true;
  }

 private:
  struct rank_state {
    int done[v_visits]{};
    int size = 0, owed = 0, paid = 0;  // actions; Bs, and Ws
    long clock = 0, live = 0, idle = 0, approved = 0;
  };

  /// A run. Returns false if an action had no room or no input.
  constexpr bool once() {
    for (int r = 0; r < p_; ++r) {
      rank_state fresh{};
      fresh.approved = rank_.item[r].approved;
      rank_.item[r] = fresh;
    }
    for (long i = 0; i < long(p_) * v_visits * m_; ++i) end_.item[i] = missing;
    failed_ = false, most_idle_ = 0;
    warm_up();
    for (int round = 0; round < 2 * m_ && !failed_; ++round) backwards(), forwards();
    for (int r = 0; r < p_ && !failed_; ++r)
      while (rank_.item[r].paid < rank_.item[r].owed) pay(r);
    return !failed_;
  }

  /// F of micro-batch 0 down the ranks and up again. On the way up, a rank that would wait lets
  /// further micro-batches in. Then each rank catches up with the rank before it.
  constexpr void warm_up() {
    for (int r = 0; r < p_; ++r) put(r, f_down);
    for (int r = p_ - 1; r >= 0 && !failed_; --r) {
      rank_state const& s = rank_.item[r];
      long const ahead = (r + 1) * (cost(r, f_down).memory.forward + cost(r, f_up).memory.forward);
      while (!failed_ && r < p_ - 1 && s.done[f_down] < m_ && s.live + ahead <= limit_(r) &&
             s.clock + cost(r, f_down).forward <= arrival(r, f_up))
        for (int j = 0; j <= r; ++j) put(j, f_down);
      put(r, f_up);
    }
    for (int r = 1, turn = f_down; r < p_ && !failed_; ++r) {
      auto const &mine = rank_.item[r].done, &above = rank_.item[r - 1].done;
      while (!failed_ && (mine[f_down] + mine[f_up] < above[f_down] + above[f_up] ||
                          (mine[f_up] <= above[f_up] && above[f_up] < m_))) {
        for (int j = p_ - 1; j >= r; --j)
          if (rank_.item[j].done[turn] < m_) put(j, turn);
        turn = f_up - turn;
      }
    }
  }

  /// One B on every rank: the micro-batch's second where there is one, from the last rank on.
  constexpr void backwards() {
    for (int r = 0; r < p_; ++r) {
      rank_state const& s = rank_.item[r];
      long const up = cost(r, b_up).memory.backward_input,
                 down = cost(r, b_down).memory.backward_input, more = up > down ? up : down;
      while (!failed_ && s.live + more > limit_(r)) pay(r);
      bool const any = s.done[b_down] < s.done[b_up];
      is_down_.item[r] = any && (arrival(r, b_down) != missing || s.done[b_up] == m_);
    }
    for (int r = p_ - 1; r >= 0; --r)
      if (is_down_.item[r]) fill_gap(r, b_down, true), put(r, b_down);
    for (int r = 0; r < p_; ++r)
      if (!is_down_.item[r]) fill_gap(r, b_up, kind_.before_first_backward), put(r, b_up);
  }
  /// One F on every rank: the micro-batch's second where its input is made.
  constexpr void forwards() {
    for (int r = 0; r < p_ && !failed_; ++r) {
      rank_state const& s = rank_.item[r];
      if (s.done[f_up] == m_) continue;
      bool const any = s.done[f_up] < s.done[f_down], more = s.done[f_down] < m_;
      int const visit = !any                                    ? f_down
                        : arrival(r, f_up) != missing           ? f_up
                        : more && arrival(r, f_down) != missing ? f_down
                                                                : v_visits;
      if (visit == v_visits) continue;
      while (!failed_ && s.live + cost(r, visit).memory.forward > limit_(r)) pay(r);
      fill_gap(r, visit, kind_.before_forward);
      put(r, visit);
    }
  }

  constexpr chunk_cost const& cost(int r, int visit) const {
    return problem_.cost(chunk_of(p_, r, visit));
  }
  constexpr long& end(int r, int visit, int mb) {
    return end_.item[(long(r) * v_visits + visit) * m_ + mb];
  }
  /// The time at which a rank's next input of this kind arrives; `missing` while its maker has no
  /// place; 0 for what is there from the start.
  constexpr long arrival(int r, int visit) {
    auto const [from, made] = place_before(p_, r, visit);
    int const mb = rank_.item[r].done[visit];
    if (from < 0) return 0;
    if (mb == m_) return missing;
    long const there = end(from, made, mb);
    int const chunk = chunk_of(p_, from, made);
    return there == missing || from == r
               ? there
               : there + problem_.hop_time(from, r, visit <= f_up ? chunk : chunk - 1);
  }
  /// Places the next F or B of a kind.
  constexpr void put(int r, int visit) {
    rank_state& s = rank_.item[r];
    int const mb = s.done[visit];
    bool const is_forward = visit <= f_up;
    chunk_cost const& c = cost(r, visit);
    long const in = failed_ || mb == m_ ? missing : arrival(r, visit);
    long const more = is_forward ? c.memory.forward : c.memory.backward_input;
    if (in == missing || s.live + more > limit_(r)) {
      failed_ = true;
      return;
    }
    long const start = s.clock > in ? s.clock : in;
    if (s.done[f_down] > 0) s.idle += start - s.clock;
    if (s.idle > most_idle_) most_idle_ = s.idle;
    s.clock = end(r, visit, mb) = start + (is_forward ? c.forward : c.backward_input);
    s.live += more;
    add(r, visit, mb);
    if (!is_forward) owed_.item[long(r) * 2 * m_ + s.owed++] = visit + v_visits * mb;
    ++s.done[visit];
  }
  /// The W of the rank's first B without its W.
  constexpr void pay(int r) {
    rank_state& s = rank_.item[r];
    if (s.paid == s.owed) {
      failed_ = true;
      return;
    }
    int const x = owed_.item[long(r) * 2 * m_ + s.paid++], visit = x % v_visits;
    s.clock += cost(r, visit).backward_weight;
    s.live += cost(r, visit).memory.backward_weight;
    add(r, visit + w_up - b_up, x / v_visits);
  }
  constexpr void add(int r, int visit, int mb) {
    row_.item[long(r) * 6 * m_ + rank_.item[r].size++] = visit + (v_visits + 2) * mb;
  }
  /// Ws in the gap before the rank's next F or B of a kind. also_longer: a last W fills what is
  /// left of the gap where the rank would otherwise be idle for longer than the slowest rank.
  constexpr void fill_gap(int r, int visit, bool also_longer) {
    rank_state const& s = rank_.item[r];
    if (failed_) return;
    long const in = arrival(r, visit);
    if (in == missing) return;
    auto const any = [&] { return s.paid < s.owed; };
    while (any() && in >= s.clock + next_weight(r)) pay(r);
    long const approved = most_approved_ - s.approved,
               worst = most_idle_ > approved ? most_idle_ : approved;
    if (any() && also_longer && in - s.clock > worst - s.idle) pay(r);
  }
  constexpr long next_weight(int r) const {
    return cost(r, owed_.item[long(r) * 2 * m_ + rank_.item[r].paid] % v_visits).backward_weight;
  }

  static constexpr long missing = -1;

  Problem const& problem_;
  v_greedy_kind kind_;
  Limit limit_;
  int p_, m_;
  bool failed_ = false;
  long most_idle_ = 0, most_approved_ = 0;
  scratch<rank_state> rank_;
  scratch<long> end_;        // by rank, visit and micro-batch
  scratch<int> row_, best_;  // by rank: visit + (v_visits + 2) micro-batch
  scratch<int> owed_;        // by rank: visit + v_visits micro-batch of its Bs
  scratch<bool> is_down_;    // by rank: which B comes next
};

/// Fills `table` with the greedy order. Returns false, with nothing appended, if it needs more
/// memory than limit(rank).
///
/// needs:  placement::vee, two chunks per rank
/// cost:   linear in the number of actions
/// source: Qi et al., Zero Bubble Pipeline Parallelism, 2024, the authors' program for ZB-V
template <pipeline_problem Problem, action_table Table, class Limit>
constexpr bool fill_greedily(Problem const& problem, Table& table, v_greedy_kind kind,
                             Limit limit) {
  return v_greedy<Problem, Limit>(problem, kind, limit).fill(table);
}

}  // namespace pp::detail
