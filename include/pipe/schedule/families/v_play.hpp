// SPDX-License-Identifier: BSL-1.0
//
// An order of Fs and Bs on a V, played at real times. Each rank runs what is due first; while the
// input of that is on its way, an F or B that is due later comes forward, or a W fills the gap. So
// an order that was made for equal times fits others, too.
#pragma once

#include <pipe/schedule/event_queue.hpp>
#include <pipe/schedule/families/v_order.hpp>

namespace pp::detail {

/// The rule for a gap before the action that is due.
struct v_play_rule {
  static constexpr int any_length = 1000;

  /// By how many halves of a W an action in the gap may delay the action that is due.
  int delay = 0;
  bool weights_first = false;  ///< a W fills a gap before an action comes forward
};

/// A play of an order. An F comes forward only if all that is due before it still has room behind
/// it, so ranks never block each other for memory.
///
/// limit(rank): the memory of a rank
template <pipeline_problem Problem, class Limit>
class v_play {
 public:
  constexpr v_play(Problem const& problem, Limit limit)
      : problem_(problem), limit_(limit), p_(problem.ranks), m_(problem.micro_batches), n_(4 * m_),
        ranks_(p_), due_(long(p_) * n_), place_(long(p_) * n_), arrival_(long(p_) * n_),
        owed_(long(p_) * 2 * m_), done_(long(p_) * n_), wake_(p_), events_(p_) {}

  /// Appends the order to `table`, Ws included. The Ws of `order`, if any, are not read. Returns
  /// false if there is no room; `table` then lacks actions.
  template <class Order, action_table Table>
  constexpr bool fill(Order const& order, v_play_rule rule, Table& table) {
    start(order);
    long left = long(p_) * 6 * m_;
    while (!events_.empty()) {
      auto const [now, rank] = events_.take();
      wake_.item[rank] = LONG_MAX;
      rank_state& s = ranks_.item[rank];
      long next = LONG_MAX;
      int const chosen = choose(rank, now, rule, next);
      if (chosen == stuck) return false;
      if (chosen == idle) {
        if (next < LONG_MAX) wake(rank, next);
        continue;
      }
      --left;
      if (chosen == weight) {
        int const x = owed_.item[long(rank) * 2 * m_ + s.paid++];
        int const visit = x % v_visits + w_up - b_up;
        chunk_cost const& c = cost(rank, visit);
        table.push(rank, action{kind_of(visit), chunk_of(p_, rank, visit), x / v_visits});
        s.clock = now + c.backward_weight;
        s.live += c.memory.backward_weight;
      } else {
        run(rank, chosen, now, table);
      }
      wake(rank, s.clock);
    }
    return left == 0;
  }

 private:
  enum : int { stuck = -3, weight = -2, idle = -1 };  // other choices: visit + v_visits micro-batch
  struct rank_state {
    long clock = 0, live = 0;
    int head = 0, owed = 0, paid = 0;  // position of the action that is due; Bs, and Ws
    int count[v_visits]{};
  };

  constexpr chunk_cost const& cost(int rank, int visit) const {
    return problem_.cost(chunk_of(p_, rank, visit));
  }
  constexpr long time(int rank, int visit) const {
    chunk_cost const& c = cost(rank, visit);
    return visit <= f_up ? c.forward : c.backward_input;
  }
  constexpr long memory(int rank, int visit) const {
    memory_change const& change = cost(rank, visit).memory;
    return visit <= f_up ? change.forward : change.backward_input;
  }
  constexpr long hop(int from, int to, int from_visit) const {
    int const chunk = chunk_of(p_, from, from_visit);
    return problem_.hop_time(from, to, from_visit <= f_up ? chunk : chunk - 1);
  }
  constexpr void wake(int rank, long time) {
    if (long const clock = ranks_.item[rank].clock; time < clock) time = clock;
    if (time >= wake_.item[rank]) return;
    wake_.item[rank] = time;
    events_.put({time, rank});
  }

  template <class Order>
  constexpr void start(Order const& order) {
    for (int rank = 0; rank < p_; ++rank) {
      ranks_.item[rank] = rank_state{};
      wake_.item[rank] = LONG_MAX;
      long const row = long(rank) * n_;
      for (int i = 0, at = 0; i < order.size(rank); ++i) {
        action const a = order.at(rank, i);
        if (a.kind == action_kind::backward_weight) continue;
        int const x = visit_of(rank, a) + v_visits * a.micro_batch;
        due_.item[row + at] = x, place_.item[row + x] = at;
        done_.item[row + at] = false, arrival_.item[row + at] = LONG_MAX;
        ++at;
      }
    }
    for (int mb = 0; mb < m_; ++mb) arrival_.item[v_visits * mb] = 0;
    for (int rank = 0; rank < p_; ++rank) wake(rank, 0);
  }

  /// The next action of a rank. idle: nothing, at least until `next`, or until another rank wakes
  /// it.
  constexpr int choose(int rank, long now, v_play_rule rule, long& next) {
    rank_state& s = ranks_.item[rank];
    long const row = long(rank) * n_;
    while (s.head < n_ && done_.item[row + s.head]) ++s.head;
    bool const any = s.paid < s.owed;
    if (s.head == n_) return any ? weight : idle;
    int const due = due_.item[row + s.head], due_visit = due % v_visits;
    long const there = arrival_.item[row + due];
    if (there <= now) {
      long const more = memory(rank, due_visit);
      return more <= 0 || s.live + more <= limit_(rank) ? due : any ? weight : stuck;
    }
    long const w =
        any ? cost(rank, owed_.item[long(rank) * 2 * m_ + s.paid] % v_visits).backward_weight : 0;
    long const until = rule.delay == v_play_rule::any_length
                           ? LONG_MAX
                           : (there == LONG_MAX ? soonest(rank, due, now) : there) +
                                 rule.delay * cost(rank, due_visit).backward_weight / 2;
    bool const w_fits = any && now + w <= until;
    if (rule.weights_first && w_fits) return weight;
    int chosen = idle;
    next = there;
    for (int visit = 0; visit < v_visits; ++visit) {
      if (s.count[visit] == m_ || visit == due_visit) continue;
      int const x = visit + v_visits * s.count[visit];
      if (long const in = arrival_.item[row + x]; in > now) {
        if (in < next) next = in;
        continue;
      }
      if (now + time(rank, visit) > until) continue;
      if (visit <= f_up ? !has_room(rank, x)
                        : memory(rank, visit) > 0 && s.live + memory(rank, visit) > limit_(rank))
        continue;
      if (chosen == idle || place_.item[row + x] < place_.item[row + chosen]) chosen = x;
    }
    return chosen == idle && w_fits ? weight : chosen;
  }

  template <action_table Table>
  constexpr void run(int rank, int what, long now, Table& table) {
    rank_state& s = ranks_.item[rank];
    long const row = long(rank) * n_;
    int const visit = what % v_visits, mb = what / v_visits;
    done_.item[row + place_.item[row + what]] = true;
    ++s.count[visit];
    table.push(rank, action{kind_of(visit), chunk_of(p_, rank, visit), mb});
    s.clock = now + time(rank, visit);
    s.live += memory(rank, visit);
    if (visit >= b_up) owed_.item[long(rank) * 2 * m_ + s.owed++] = what;
    auto const [who, next] = after(p_, rank, visit);
    if (who < 0) return;
    long const there = s.clock + hop(rank, who, visit);
    arrival_.item[long(who) * n_ + next + v_visits * mb] = there;
    if (who == rank) return;
    if (ranks_.item[who].clock <= now) wake(who, now);
    wake(who, there);
  }

  /// The earliest time at which an input can arrive that no rank has begun to make.
  constexpr long soonest(int rank, int what, long now) const {
    auto const [from, visit] = place_before(p_, rank, what % v_visits);
    return from < 0 ? now : now + time(from, visit) + hop(from, rank, visit);
  }
  /// Whether an F has room, now and when all that is due before it runs behind it, each B with its
  /// W.
  constexpr bool has_room(int rank, int what) const {
    rank_state const& s = ranks_.item[rank];
    long const row = long(rank) * n_, most = limit_(rank), more = memory(rank, what % v_visits);
    if (s.live + more > most) return false;
    long held = s.live + more;
    for (int i = s.paid; i < s.owed; ++i)
      held += cost(rank, owed_.item[long(rank) * 2 * m_ + i] % v_visits).memory.backward_weight;
    for (int i = s.head; i < place_.item[row + what]; ++i) {
      if (done_.item[row + i]) continue;
      int const visit = due_.item[row + i] % v_visits;
      held += memory(rank, visit);
      if (visit <= f_up && held > most) return false;
      if (visit >= b_up) held += cost(rank, visit).memory.backward_weight;
    }
    return true;
  }

  Problem const& problem_;
  Limit limit_;
  int p_, m_, n_;
  scratch<rank_state> ranks_;
  // By rank, with `what` = visit + v_visits micro-batch: what is due, by position; its position and
  // the arrival of its input, by what; Bs in the order in which they ran.
  scratch<int> due_, place_;
  scratch<long> arrival_;
  scratch<int> owed_;
  scratch<bool> done_;  // by position
  scratch<long> wake_;  // by rank: the time of its event
  event_queue events_;
};

}  // namespace pp::detail
