// SPDX-License-Identifier: BSL-1.0
//
// All orders of a small problem, layer by layer: layer n has the beginnings of n actions. A
// beginning is dropped if a lower bound says that no end makes it better than the order that is
// known, or if another one has the same actions done, none later. What is left of a small problem
// is so little that the last layer is a proof. Of a larger problem only the best beginnings of each
// layer are kept (a beam search), which finds orders in tight memory that no annealing reaches.
#pragma once

#include <pipe/schedule/search/search_order.hpp>

namespace pp::detail {

/// The orders of one problem that are better than a given one.
///
/// source: which beginnings are continued by what: Giffler and Thompson, Algorithms for Solving
///         Production-Scheduling Problems, 1960, with waits for memory
template <class = void>
class exhaustive_search {
 public:
  /// `width`: the beginnings that a layer keeps, at most.
  exhaustive_search(search_actions const& actions, int width)
      : all_(actions), p_(actions.ranks), m_(actions.micro_batches),
        kinds_(actions.count / actions.micro_batches), width_(width), turn_(actions.count),
        rest_(actions.count), head_(actions.count), needs_b_(actions.count),
        needs_w_(actions.count), of_rank_(actions.count), filled_(actions.ranks),
        made_(row_length()), now_(2L * width * row_length()), next_(2L * width * row_length()),
        now_node_(2L * width), next_node_(2L * width), heap_(4L * width), key_(width),
        nodes_(long(width) * actions.count) {}

  /// Replaces an order by the best one, if that is better. Returns whether it is proved that no
  /// order is better than the result: whether no beginning was dropped for the width.
  ///
  /// needs: order.fits() and can be timed, with the micro-batches of each kind and chunk in order
  /// law:   the result is no worse, and fits
  /// cost:  at most some 2 width n^2 for n actions
  bool improve(search_order& order) {
    order_times times(all_);
    score const known = times.play(order);
    most_ = known.worst - 1 + all_.latest;
    for (int i = 0; i < all_.count; ++i) turn_.item[i] = times.run.item[i];
    find_needs();
    find_rests();
    is_whole_ = true;
    for (long i = 0; i < row_length(); ++i) now_.item[i] = i < all_.count ? none : 0;
    for (int rank = 0; rank < p_; ++rank) ready(now_.item, rank) = all_.begin.item[rank];
    now_node_.item[0] = none;
    size_ = 1;
    for (int layer = 0; layer < all_.count && size_ > 0; ++layer) {
      candidates_ = 0;
      for (int i = 0; i < size_; ++i) continue_from(i);  // which may add waiting ones to the layer
      take_best(layer);
    }
    if (size_ > 0) take_order(order);
    return is_whole_;
  }

 private:
  static constexpr int none = -1;

  /// A beginning that is continued by an action, with the lower bound of all its ends.
  struct candidate {
    long bound = 0, sum = 0;  ///< sum: of the bounds of all ranks
    int from = 0, x = 0;
    long end = 0;
    bool operator<(candidate const& b) const {
      return bound != b.bound ? bound < b.bound
             : sum != b.sum   ? sum < b.sum
             : from != b.from ? from < b.from
                              : x < b.x;
    }
  };
  struct node {
    int before = none, x = 0;
  };

  // A beginning is a row of numbers: the ends of its actions, by rank the time from which the next
  // one may start, and by kind and chunk the number done, and whether it may not come next.
  long row_length() const { return all_.count + p_ + 2L * kinds_; }
  long& ready(long* row, int rank) const { return row[all_.count + rank]; }
  long& done(long* row, int kind) const { return row[all_.count + p_ + kind]; }
  long& waits(long* row, int kind) const { return row[all_.count + p_ + kinds_ + kind]; }

  search_actions::fact const& fact(int x) const { return all_.of(x); }
  search_actions::fact const& fact_of(int kind) const { return all_.facts.item[kind]; }
  static void raise(long& most, long to) { most = to > most ? to : most; }

  /// Whether memory is never given back before it is taken, on a rank.
  bool is_regular(int rank) const {
    for (int k = 0; k < kinds_; k += 3) {
      long const f = fact_of(k).memory, b = fact_of(k + 1).memory, w = fact_of(k + 2).memory;
      if (fact_of(k).rank == rank && (f < 0 || f + b < 0 || f + b + w < 0)) return false;
    }
    return true;
  }
  /// The last B and the last W of its chunk for which each F waits, to have memory.
  void find_needs() {
    for (int k = 0; k < kinds_; k += 3) {
      long const f = fact_of(k).memory, b = fact_of(k + 1).memory, w = fact_of(k + 2).memory;
      int const rank = fact_of(k).rank;
      long room = all_.room.item[rank];  // beside the same micro-batch in earlier chunks
      for (int e = 0; e < k; e += 3)
        if (fact_of(e).rank == rank) room -= fact_of(e).memory;
      bool const is_limited = is_regular(rank) && f > 0;
      for (int j = 0; j < m_; ++j) {
        int bs = 0, ws = 0;
        long const all_f = (j + 1) * f;
        while (bs < j && all_f + bs * b + (w < 0 ? bs * w : 0) > room) ++bs;
        while (ws < j && all_f + (b < 0 ? j : ws) * b + ws * w > room) ++ws;
        needs_b_.item[k * m_ + j] = is_limited && bs > 0 ? (k + 1) * m_ + bs - 1 : none;
        needs_w_.item[k * m_ + j] = is_limited && ws > 0 ? (k + 2) * m_ + ws - 1 : none;
      }
    }
  }
  /// From the start of each action until the worst rank can end: along what reads its result, and
  /// by the work of its rank that must follow.
  void find_rests() {
    for (int x = 0; x < all_.count; ++x) rest_.item[x] = 0;
    for (int i = all_.count - 1; i >= 0; --i) {
      int const x = turn_.item[i], kind = x / m_, left = m_ - x % m_;
      search_actions::fact const& f = fact(x);
      long rest = rest_.item[x], load = all_.latest - all_.begin.item[f.rank];
      if (f.output != 0) raise(rest, rest_.item[x + f.output] + f.on_way);
      if (f.weight != 0) raise(rest, rest_.item[x + f.weight]);
      if (left > 1) raise(rest, rest_.item[x + 1]);
      for (int k = 0; k < kinds_; k += 3) {
        if (fact_of(k).rank != f.rank) continue;
        long const here = kind / 3 == k / 3 ? left - 1 : 0;
        if (kind % 3 == 0)
          load += (k > kind ? left : here) * fact_of(k).time +
                  left * (fact_of(k + 1).time + fact_of(k + 2).time);
        if (kind % 3 == 1 && k < kind)
          load += (here > 0 || k + 1 == kind ? left - 1 : left) * fact_of(k + 1).time +
                  left * fact_of(k + 2).time;
        if (kind % 3 == 2) load += here * fact_of(k + 2).time;
      }
      raise(rest, load);
      rest_.item[x] = rest += f.time;
      for (int y : {needs_b_.item[x], needs_w_.item[x]})
        if (kind % 3 == 0 && y >= 0) raise(rest_.item[y], rest);
    }
  }

  /// Sets the bounds of a candidate that leads to a beginning. False if it is not good enough.
  bool is_promising(long* row, candidate& result) {
    result.bound = result.sum = 0;
    for (int rank = 0; rank < p_; ++rank) filled_.item[rank] = 0;
    for (int i = 0; i < all_.count; ++i) {
      int const x = turn_.item[i];
      if (row[x] >= 0) continue;
      search_actions::fact const& f = fact(x);
      auto const end_of = [&](int y) {
        return row[y] >= 0 ? row[y] : head_.item[y] + fact(y).time;
      };
      long head = ready(row, f.rank);
      if (f.input != 0) raise(head, end_of(x + f.input) + f.hop);
      if (x % m_ > 0) raise(head, end_of(x - 1));
      if (x / m_ % 3 == 0)
        for (int y : {needs_b_.item[x], needs_w_.item[x]})
          if (y >= 0) raise(head, end_of(y));
      head_.item[x] = head;
      raise(result.bound, head + rest_.item[x]);
      if (result.bound > most_) return false;
      int* const mine = of_rank_.item + f.rank * all_.length;
      int at = filled_.item[f.rank]++;
      for (; at > 0 && head_.item[mine[at - 1]] > head; --at) mine[at] = mine[at - 1];
      mine[at] = x;
    }
    // The work of a rank from some time on, and the least that follows it.
    for (int rank = 0; rank < p_; ++rank) {
      int const* const mine = of_rank_.item + rank * all_.length;
      long work = 0, after = LONG_MAX, bound = 0;
      for (int i = filled_.item[rank] - 1; i >= 0; --i) {
        int const x = mine[i];
        long const time = fact(x).time, rest = rest_.item[x] - time;
        work += time;
        after = rest < after ? rest : after;
        raise(bound, head_.item[x] + work + after);
      }
      raise(result.bound, bound);
      result.sum += bound;
      if (bound > most_) return false;
    }
    return true;
  }

  long live(long* row, int rank) const {
    long sum = 0;
    for (int k = 0; k < kinds_; ++k)
      if (fact_of(k).rank == rank) sum += done(row, k) * fact_of(k).memory;
    return sum;
  }
  /// Whether a rank has the memory to end all micro-batches that it has begun, the oldest first.
  bool can_end(long* row, int rank) const {
    long ended = m_, begun = 0;
    for (int k = 0; k < kinds_; k += 3)
      if (fact_of(k).rank == rank) {
        long const n = done(row, k);
        ended = n < ended ? n : ended;
        raise(begun, n);
      }
    for (long mb = ended; mb < begun; ++mb) {
      long needed = 0;
      for (int k = 0; k < kinds_; k += 3)
        if (long const n = done(row, k) - mb; fact_of(k).rank == rank)
          needed += (n > 0 ? n : 1) * fact_of(k).memory;
      if (needed > all_.room.item[rank]) return false;
    }
    return true;
  }

  /// Adds a candidate for every action that may come next, on the rank where one can end first:
  /// the actions that can start before that end. Where more memory would be taken, the rank may
  /// also wait until another action can start.
  void continue_from(int i) {
    long* const row = now_.item + i * row_length();
    int first = none;
    long soonest = LONG_MAX;
    auto const start_of = [&](int kind) {
      int const x = kind * m_ + int(done(row, kind));
      search_actions::fact const& f = fact(x);
      if (f.input != 0 && row[x + f.input] < 0) return LONG_MAX;
      if (f.memory > 0 && live(row, f.rank) + f.memory > all_.room.item[f.rank]) return LONG_MAX;
      long start = ready(row, f.rank);
      if (f.input != 0) raise(start, row[x + f.input] + f.hop);
      return start;
    };
    for (int k = 0; k < kinds_; ++k)
      if (done(row, k) < m_ && waits(row, k) == 0)
        if (long const start = start_of(k); start < LONG_MAX && start + fact_of(k).time < soonest) {
          soonest = start + fact_of(k).time;
          first = k;
        }
    if (first == none) return;
    int const rank = fact_of(first).rank;
    bool const may_wait = fact_of(first).memory > 0 && all_.room.item[rank] < no_limit;
    if (may_wait) copy(row, waiting_row());
    for (int k = 0; k < kinds_; ++k) {
      if (fact_of(k).rank != rank || done(row, k) == m_ || waits(row, k) != 0) continue;
      long const start = start_of(k);
      if (start == LONG_MAX || (k != first && start >= soonest)) continue;
      if (may_wait) waits(waiting_row(), k) = 1;
      candidate c;
      c.from = i;
      c.x = k * m_ + int(done(row, k));
      c.end = start + fact_of(k).time;
      make(c, made_.item);
      if (k % 3 == 0 && is_regular(rank) && !can_end(made_.item, rank)) continue;
      if (is_promising(made_.item, c)) offer(c);
    }
    if (!may_wait) return;
    candidate c;
    ready(waiting_row(), rank) = soonest;
    if (!is_promising(waiting_row(), c)) return;
    if (size_ + 1 == 2 * width_) {
      is_whole_ = false;
      return;
    }
    now_node_.item[size_++] = now_node_.item[i];
  }
  long* waiting_row() const { return now_.item + size_ * row_length(); }
  void copy(long const* from, long* to) const {
    for (long i = 0; i < row_length(); ++i) to[i] = from[i];
  }
  /// The beginning to which a candidate leads.
  void make(candidate const& c, long* row) const {
    copy(now_.item + c.from * row_length(), row);
    int const rank = fact(c.x).rank;
    row[c.x] = ready(row, rank) = c.end;
    ++done(row, c.x / m_);
    for (int k = 0; k < kinds_; ++k)
      if (fact_of(k).rank == rank) waits(row, k) = 0;
  }

  /// Adds a candidate to the heap, whose top is the worst. If the heap is full, the worst one goes.
  void offer(candidate const& c) {
    if (candidates_ < 4 * width_) {
      int at = candidates_++;
      for (; at > 0 && heap_.item[(at - 1) / 2] < c; at = (at - 1) / 2)
        heap_.item[at] = heap_.item[(at - 1) / 2];
      heap_.item[at] = c;
    } else {
      is_whole_ = false;
      if (c < heap_.item[0]) sink(c, candidates_);
    }
  }
  /// Puts a candidate in the place of the top of the first `size` ones.
  void sink(candidate const& c, int size) {
    int at = 0;
    for (int child; (child = 2 * at + 1) < size; at = child) {
      if (child + 1 < size && heap_.item[child] < heap_.item[child + 1]) ++child;
      if (!(c < heap_.item[child])) break;
      heap_.item[at] = heap_.item[child];
    }
    heap_.item[at] = c;
  }
  /// The next layer: the best candidates that no better one dominates.
  void take_best(int layer) {
    for (int n = candidates_ - 1; n > 0; --n) {
      candidate const last = heap_.item[n];
      heap_.item[n] = heap_.item[0];
      sink(last, n);
    }
    int taken = 0;
    for (int n = 0; n < candidates_; ++n) {
      candidate const& c = heap_.item[n];
      make(c, made_.item);
      unsigned long long key = 0;
      for (int k = 0; k < kinds_; ++k)
        key = (key ^ static_cast<unsigned long long>(done(made_.item, k))) * 1099511628211u;
      bool is_dominated = false;
      for (int other = 0; other < taken && !is_dominated; ++other)
        is_dominated =
            key_.item[other] == key && dominates(next_.item + other * row_length(), made_.item);
      if (is_dominated) continue;
      if (taken == width_) {
        is_whole_ = false;
        break;
      }
      key_.item[taken] = key;
      copy(made_.item, next_.item + taken * row_length());
      long const at = long(layer) * width_ + taken;
      nodes_.item[at] = {now_node_.item[c.from], c.x};
      next_node_.item[taken++] = static_cast<int>(at);
    }
    for (int i = 0; i < taken; ++i) {
      copy(next_.item + i * row_length(), now_.item + i * row_length());
      now_node_.item[i] = next_node_.item[i];
    }
    size_ = taken;
  }
  /// Whether each end of beginning `b` can follow `a`, no later.
  bool dominates(long* a, long* b) const {
    for (int k = 0; k < kinds_; ++k)
      if (done(a, k) != done(b, k) || waits(a, k) > waits(b, k)) return false;
    for (int rank = 0; rank < p_; ++rank)
      if (ready(a, rank) > ready(b, rank)) return false;
    for (int k = 0; k < kinds_; ++k) {
      search_actions::fact const& f = fact_of(k);
      if (f.output == 0 || f.gives_here) continue;
      int const next = k + f.output / m_;
      long const reads = ready(b, fact_of(next).rank) - f.on_way;
      for (int x = k * m_ + int(done(a, next)); x < k * m_ + int(done(a, k)); ++x)
        if (a[x] > b[x] && a[x] > reads) return false;
    }
    return true;
  }
  void take_order(search_order& order) {
    int best = 0;
    score least;
    for (int i = 0; i < size_; ++i) {
      auto found = score{0, 0};
      for (int rank = 0; rank < p_; ++rank)
        found.add(ready(now_.item + i * row_length(), rank) - all_.begin.item[rank]);
      if (!(found < least)) continue;
      least = found;
      best = i;
    }
    int size = 0;
    for (int at = now_node_.item[best]; at >= 0; at = nodes_.item[at].before)
      turn_.item[all_.count - ++size] = nodes_.item[at].x;
    order.clear();
    for (int i = 0; i < all_.count; ++i) order.push_number(fact(turn_.item[i]).rank, turn_.item[i]);
  }

  static constexpr long no_limit = search_problem::no_limit;

  search_actions const& all_;
  int p_, m_, kinds_, width_;
  long most_ = 0;  // the worst time that is good enough, plus all_.latest
  bool is_whole_ = true;
  scratch<int> turn_;   // the actions in an order in which each comes after what it needs
  scratch<long> rest_;  // by action: a lower bound from its start to the end of the worst time
  scratch<long> head_;  // by action that is not done: a lower bound of its start
  scratch<int> needs_b_, needs_w_;  // by F: see find_needs
  scratch<int> of_rank_, filled_;   // the actions of each rank that are not done, by head
  scratch<long> made_, now_, next_;
  scratch<int> now_node_, next_node_;
  int size_ = 0;  // of the layer
  scratch<candidate> heap_;
  int candidates_ = 0;
  scratch<unsigned long long> key_;
  scratch<node> nodes_;
};

}  // namespace pp::detail
