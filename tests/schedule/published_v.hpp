// SPDX-License-Identifier: BSL-1.0
//
// The orders of a V that its authors publish, from the rules of their programs, with vectors and
// maps and no thought of speed: V-Min and V-Half on unit slots, and the greedy order of ZB-V in its
// four kinds. Chunks of a rank have equal memory.
#pragma once

#include <algorithm>
#include <array>
#include <climits>
#include <deque>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include <pipe/schedule/catalog/catalog.hpp>

namespace published {

using pp::detail::action_kind;
using pp::schedules::run_time_problem;
using table = pp::schedules::dynamic_table;

/// The stops of a micro-batch on a rank, in order: F and B of the first chunk are `in` and `out`,
/// those of the second chunk between them. A W has the stop of its B.
enum stop : int { in, turn, back, out };

/// An action by stop and micro-batch, or the W of that B.
struct item {
  int stop = in, mb = 0;
  bool weight = false;

  friend bool operator==(item const&, item const&) = default;
  friend bool operator<(item const& a, item const& b) {
    return std::tuple(a.weight, a.stop, a.mb) < std::tuple(b.weight, b.stop, b.mb);
  }
};
using rows = std::vector<std::vector<item>>;

inline int chunk_of(int ranks, int rank, int stop) {
  return stop == in || stop == out ? rank : 2 * ranks - 1 - rank;
}
inline table table_of(int ranks, rows const& order) {
  table made(ranks, pp::schedules::placement::vee);
  for (int rank = 0; rank < ranks; ++rank)
    for (item const& x : order[std::size_t(rank)])
      made.push(rank, {x.weight         ? action_kind::backward_weight
                       : x.stop <= turn ? action_kind::forward
                                        : action_kind::backward_input,
                       chunk_of(ranks, rank, x.stop), x.mb});
  return made;
}

/// V-Min or V-Half on unit slots.
class block {
 public:
  block(int ranks, int micro_batches, bool half)
      : p_(ranks), m_(micro_batches), slots_(std::size_t(ranks)) {
    for (int r = 0; r < p_; ++r) {
      int const k = half ? (p_ % 2 == 0 ? 3 : 0) : (p_ % 3 == 0 ? 2 : 0);
      int const first[4] = {half ? 2 * r : r, half ? 3 * p_ - r - 2 : 2 * p_ - r - 1,
                            half ? 3 * p_ + k + 2 * r - 1 : 2 * p_ + k + r,
                            half ? 6 * p_ + k - r - 2 : 4 * p_ + k - r - 1};
      for (int s = in; s <= out; ++s)
        for (int mb = 0; mb < m_; ++mb) slots_[std::size_t(r)][{s, mb}] = first[s] + 6 * mb;
    }
  }

  rows order() {
    // First with Ws of one kind, in the order of the Bs: both ends move. Then all move up, without
    // a change of order. Then without Ws: the end moves once more.
    for (int r = 0; r < p_; ++r) place_weights(r, false);
    move_ends(true);
    squeeze();
    for (auto& row : slots_) std::erase_if(row, [](auto const& x) { return x.first.weight; });
    move_ends(false);
    rows made(std::size_t(p_), std::vector<item>{});
    for (int r = 0; r < p_; ++r) {
      place_weights(r, true);
      for (auto const& [slot, x] : by_slot(r)) made[std::size_t(r)].push_back(x);
    }
    return made;
  }

 private:
  std::map<int, item> by_slot(int r) const {
    std::map<int, item> cells;
    for (auto const& [x, slot] : slots_[std::size_t(r)]) cells[slot] = x;
    return cells;
  }
  /// Ws in free slots: in one queue, where W `mb` is the rank's mb-th, or in a queue for each
  /// chunk, with the second chunk first.
  void place_weights(int r, bool by_chunk) {
    auto const cells = by_slot(r);
    int owed[2] = {0, 0}, paid[2] = {0, 0};
    int const last = cells.rbegin()->first;
    for (int slot = 0; slot <= last || owed[0] + owed[1] > 0; ++slot)
      if (auto const x = cells.find(slot); x != cells.end()) {
        if (x->second.stop >= back) ++owed[by_chunk && x->second.stop == out];
      } else if (int const which = owed[0] > 0 ? 0 : 1; owed[which] > 0) {
        slots_[std::size_t(r)][{back + which, paid[which]++, true}] = slot;
        --owed[which];
      }
  }
  /// The most chunks that a rank has in memory. Without Ws in the slots, a free slot counts as one
  /// where one could run.
  static int peak(std::map<int, item> const& cells, bool with_weights) {
    int live = 0, owed = 0, most = 0, before = -1;
    for (auto const& [slot, x] : cells) {
      if (!with_weights) {
        int const freed = std::min(owed, slot - before - 1);
        live -= freed, owed -= freed;
      }
      before = slot;
      if (x.weight)
        --live;
      else if (x.stop <= turn)
        ++live;
      else
        ++owed;
      most = std::max(most, live);
    }
    return most;
  }
  /// The slot of what an action follows.
  int behind(int r, item const& x) const {
    auto const& mine = slots_[std::size_t(r)];
    int last = -1;
    auto const after = [&](std::map<item, int> const& row, item const& y) {
      last = std::max(last, row.at(y));
    };
    if (x.mb > 0) after(mine, {x.stop, x.mb - 1, x.weight});
    if (x.weight) {
      std::vector<int> backwards;
      for (auto const& [y, slot] : mine)
        if (!y.weight && y.stop >= back) backwards.push_back(slot);
      std::sort(backwards.begin(), backwards.end());
      return std::max(last, backwards[std::size_t(x.mb)]);
    }
    int const from = x.stop == in || x.stop == back ? r - 1 : r + 1;
    if (from >= 0 && from < p_) after(slots_[std::size_t(from)], x);
    if (x.stop > in) after(mine, {x.stop - 1, x.mb});
    return last;
  }
  /// Moves what comes before the steady state, and behind it, to earlier free slots, if no rank
  /// then needs more than some rank does now. The steady state reaches from the first rank's first
  /// `out` to its last `in`. Without Ws only what comes behind moves.
  void move_ends(bool with_weights) {
    int most = 0;
    std::vector<std::tuple<int, int, int, int, bool>> all;
    for (int r = 0; r < p_; ++r) {
      most = std::max(most, peak(by_slot(r), with_weights));
      for (auto const& [x, slot] : slots_[std::size_t(r)])
        all.emplace_back(slot, r, x.stop, x.mb, x.weight);
    }
    std::sort(all.begin(), all.end());
    int phase = 0;
    for (auto const& [slot, r, s, mb, weight] : all) {
      item const x{s, mb, weight};
      if (phase == 0 && r == 0 && x.stop == out && !weight) phase = 1;
      if (phase == 1 && x == item{in, m_ - 1})
        phase = 2;
      else if (phase == 2 || (phase == 0 && with_weights))
        for (int to = behind(r, x) + 1; to < slot; ++to) {
          auto cells = by_slot(r);
          if (cells.count(to) > 0) continue;
          cells.erase(slot);
          cells[to] = x;
          if (peak(cells, with_weights) > most) continue;
          slots_[std::size_t(r)][x] = to;
          break;
        }
    }
  }
  void squeeze() {
    std::vector<std::tuple<int, int, item>> all;
    for (int r = 0; r < p_; ++r)
      for (auto const& [x, slot] : slots_[std::size_t(r)]) all.emplace_back(slot, r, x);
    std::sort(all.begin(), all.end());
    std::vector<int> free(std::size_t(p_), 0);
    for (auto const& [slot, r, x] : all) {
      int& next = free[std::size_t(r)];
      slots_[std::size_t(r)][x] = next = x.weight ? next : std::max(next, behind(r, x) + 1);
      ++next;
    }
  }

  int p_, m_;
  std::vector<std::map<item, int>> slots_;  // by rank
};

/// The greedy order of ZB-V: rounds of one B and one F on every rank. fill_f, fill_b: whether a W
/// may also fill a gap shorter than itself before an F, and before the first B of a micro-batch.
class greedy {
 public:
  greedy(run_time_problem const& problem, long limit, bool fill_f, bool fill_b)
      : q_(problem), limit_(limit), fill_f_(fill_f), fill_b_(fill_b) {}

  /// The best of several runs, in each of which the gaps of the run before are approved.
  std::optional<rows> order() {
    std::optional<rows> best;
    std::vector<long> approved(std::size_t(q_.ranks), 0);
    for (long least = LONG_MAX; run(approved);) {
      long const idle = worst();
      if (idle >= least) break;
      least = idle;
      best.emplace();
      approved.clear();
      for (auto const& r : ranks_) best->push_back(r.row), approved.push_back(r.idle);
    }
    return best;
  }

 private:
  struct rank {
    std::vector<item> row;
    std::deque<item> owed;
    std::array<int, 4> done{};
    std::map<item, long> end;
    long clock = 0, live = 0, idle = 0;
  };

  long worst() const {
    long most = 0;
    for (auto const& r : ranks_) most = std::max(most, r.idle);
    return most;
  }
  pp::schedules::chunk_cost const& cost(int r, int s) const {
    return q_.cost(chunk_of(q_.ranks, r, s));
  }
  /// When the next micro-batch of a stop arrives: LONG_MAX before it has been sent, -1 from no
  /// other rank.
  long arrival(int r, int s) const {
    int const from = s == in || s == back ? r - 1 : r + 1, mb = at(r).done[std::size_t(s)];
    if (from < 0 || from == q_.ranks) return -1;
    auto const sent = at(from).end.find({s, mb});
    return sent == at(from).end.end() ? LONG_MAX : sent->second + q_.hop;
  }
  rank const& at(int r) const { return ranks_[std::size_t(r)]; }
  rank& at(int r) { return ranks_[std::size_t(r)]; }
  int done(int r, int s) const { return at(r).done[std::size_t(s)]; }

  struct stuck {};

  void put(int r, int s) {
    rank& mine = at(r);
    int const mb = done(r, s), m = q_.micro_batches;
    auto const& c = cost(r, s);
    long const more = s <= turn ? c.memory.forward : c.memory.backward_input;
    if (mb == m || mine.live + more > limit_ || (s > in && mine.end.count({s - 1, mb}) == 0) ||
        arrival(r, s) == LONG_MAX)
      throw stuck{};
    long const start = std::max(mine.clock, arrival(r, s));
    if (done(r, in) > 0) mine.idle += start - mine.clock;
    mine.clock = start + (s <= turn ? c.forward : c.backward_input);
    mine.end[{s, mb}] = mine.clock;
    mine.live += more;
    mine.row.push_back({s, mb});
    if (s >= back) mine.owed.push_back({s, mb, true});
    ++mine.done[std::size_t(s)];
  }
  void pay(int r) {
    rank& mine = at(r);
    if (mine.owed.empty()) throw stuck{};
    item const w = mine.owed.front();
    mine.owed.pop_front();
    mine.row.push_back(w);
    mine.clock += cost(r, w.stop).backward_weight;
    mine.live += cost(r, w.stop).memory.backward_weight;
  }
  void fill(int r, int s, bool also_longer, std::vector<long> const& approved) {
    rank& mine = at(r);
    long const there = arrival(r, s);
    if (there < 0 || there == LONG_MAX) return;
    while (!mine.owed.empty() &&
           mine.clock + cost(r, mine.owed.front().stop).backward_weight <= there)
      pay(r);
    long const most = std::max(
        worst(), *std::max_element(approved.begin(), approved.end()) - approved[std::size_t(r)]);
    if (also_longer && !mine.owed.empty() && there - mine.clock > most - mine.idle) pay(r);
  }

  bool run(std::vector<long> const& approved) {
    int const p = q_.ranks, m = q_.micro_batches;
    ranks_.assign(std::size_t(p), rank{});
    try {
      for (int r = 0; r < p; ++r) put(r, in);
      for (int r = p - 1; r >= 0; --r) {
        while (r < p - 1 && at(r).live + 2 * (r + 1) * cost(r, in).memory.forward <= limit_ &&
               at(r).clock + cost(r, in).forward <= arrival(r, turn) && done(r, in) < m)
          for (int j = 0; j <= r; ++j) put(j, in);
        put(r, turn);
      }
      stop next = in;
      for (int r = 1; r < p; ++r)
        while (done(r, in) + done(r, turn) < done(r - 1, in) + done(r - 1, turn) ||
               (done(r, turn) <= done(r - 1, turn) && done(r - 1, turn) < m)) {
          for (int j = p - 1; j >= r; --j)
            if (done(j, next) < m) put(j, next);
          next = next == in ? turn : in;
        }
      for (int round = 0; round < 2 * m; ++round) {
        backwards(approved);
        forwards(approved);
      }
      for (int r = 0; r < p; ++r)
        while (!at(r).owed.empty()) pay(r);
    } catch (stuck) {
      return false;
    }
    return true;
  }
  void backwards(std::vector<long> const& approved) {
    int const p = q_.ranks, m = q_.micro_batches;
    std::vector<int> second, first;
    for (int r = 0; r < p; ++r) {
      while (at(r).live + cost(r, back).memory.backward_input > limit_) pay(r);
      bool const any = done(r, out) < done(r, back);
      (any && (done(r, back) == m || arrival(r, out) != LONG_MAX) ? second : first).push_back(r);
    }
    for (auto r = second.rbegin(); r != second.rend(); ++r)
      fill(*r, out, true, approved), put(*r, out);
    for (int r : first) fill(r, back, fill_b_, approved), put(r, back);
  }
  void forwards(std::vector<long> const& approved) {
    int const m = q_.micro_batches;
    for (int r = 0; r < q_.ranks; ++r) {
      if (done(r, turn) == m) continue;
      int next = in;
      if (done(r, turn) < done(r, in)) {
        if (arrival(r, turn) != LONG_MAX)
          next = turn;
        else if (done(r, in) == m || arrival(r, in) == LONG_MAX)
          continue;
      }
      while (at(r).live + cost(r, next).memory.forward > limit_) pay(r);
      fill(r, next, fill_f_, approved);
      put(r, next);
    }
  }

  run_time_problem const& q_;
  long limit_;
  bool fill_f_, fill_b_;
  std::vector<rank> ranks_;
};

}  // namespace published
