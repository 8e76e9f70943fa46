// SPDX-License-Identifier: BSL-1.0
//
// The partition of a model into stages by time, memory and transfers. The time of the slowest stage
// is seldom fixed by all stages: the cuts between the others are free, and a rank of a pipeline
// keeps more micro-batches the earlier its stage is, so a free cut can take memory from the fullest
// rank at no cost of time.
#pragma once

#include <type_traits>

#include <pipe/passes/partition.hpp>
#include <pipe/schedule/scratch.hpp>

namespace pp::detail {

/// A model to cut, and what its stages keep.
///
/// shape: times, state, kept, crossing[layers]; in_flight[stages]; rank[stages, replicas];
///        fixed[ranks], or null for none
/// units: bytes, but for `times`
struct cut_problem {
  int layers = 1, stages = 1, ranks = 1, replicas = 1;
  long const* times = nullptr;     // by layer, forward and backward
  long const* state = nullptr;     // by layer: parameters, gradients, optimizer state
  long const* kept = nullptr;      // by layer: what a micro-batch in flight keeps
  long const* crossing = nullptr;  // by layer: transfers of a micro-batch over the cut before it
  int const* in_flight = nullptr;  // by stage: micro-batches
  int const* rank = nullptr;       // by stage and replica: the first has the state
  long const* fixed = nullptr;     // by rank: what it has whatever its stages are
  long limit = 0;                  // of a rank; 0: none

  /// Calls use(rank, bytes) for the ranks of a stage with layers [begin, end).
  template <class Use>
  constexpr void for_each_rank(int stage, int begin, int end, Use const& use) const {
    long owned = 0, in_each = 0;
    for (int i = begin; i < end; ++i) owned += state[i], in_each += in_flight[stage] * kept[i];
    for (int k = 0; k < replicas; ++k)
      use(rank[stage * replicas + k], k == 0 ? owned + in_each : in_each);
  }
  constexpr long fixed_of(int r) const { return fixed == nullptr ? 0 : fixed[r]; }
  /// Whether no rank has several stages.
  constexpr bool is_one_each() const {
    for (int i = 0; i < stages * replicas; ++i)
      for (int k = 0; k < i; ++k)
        if (rank[i] == rank[k]) return false;
    return true;
  }
};

/// Sums the bytes of the stages of each rank with these cuts, without what is fixed.
///
/// shape: bytes[ranks], initially 0
template <class Cuts, class Bytes>
constexpr void count_bytes(cut_problem const& p, Cuts const& cuts, Bytes& bytes) {
  for (int s = 0; s < p.stages; ++s)
    p.for_each_rank(s, cuts[s], cuts[s + 1], [&](int r, long all) { bytes[r] += all; });
}

/// A search for cuts of a problem. The objectives are compared in this order: the time of the
/// slowest stage, the bytes of the fullest rank, the bytes of transfers, and the distance of each
/// cut, from the left, to an even share of the time.
///
/// Where no rank has several stages, each question is one pass: from the right, the least transfers
/// with which the layers from each on can be the last stages. It looks at the layers where a stage
/// can begin so that no stage is slower than the slowest: the fewer, the better a model is
/// balanced. The stages of a rank share its memory, so their cuts are tried one after the other;
/// bounds end a trial early.
class cut_search {
 public:
  constexpr explicit cut_search(cut_problem const& p)
      : p_(p), is_one_each_(p.is_one_each()), before_(p.layers + 1), first_(p.stages + 1),
        last_(p.stages + 1), least_(long(p.stages + 1) * (p.layers + 1)), ends_(p.layers + 1),
        cut_(p.stages + 1), best_cut_(p.stages + 1), bytes_(p.ranks) {
    for (int i = 0; i < p.layers; ++i) {
      sums const& all = before_.item[i];
      before_.item[i + 1] = {all.time + p.times[i], all.state + p.state[i], all.kept + p.kept[i]};
    }
  }

  /// Finds the best cuts; within the limit, if there is one, as far as is_found() then says.
  template <class Cuts>
  constexpr void run(Cuts& cuts) {
    if (std::is_constant_evaluated() && cells() > most_cells)
      return partition_by_cost(p_.times, p_.layers, p_.stages, cuts);
    long const total = before_.item[p_.layers].time;
    long time = least_bottleneck(p_.times, p_.layers, p_.stages);
    bool const limited = p_.limit > 0;
    if (limited && !fits(time, p_.limit)) {
      long high = total;
      is_found_ = fits(high, p_.limit);
      // Without cuts that fit: those of the least memory.
      for (long low = time + 1; is_found_ && low < high;) {
        long const middle = low + (high - low) / 2;
        if (fits(middle, p_.limit))
          high = middle;
        else
          low = middle + 1;
      }
      time = high;
    }
    long const most = limited && is_found_ ? p_.limit : none;
    if (is_one_each_)
      choose_for_one_each(time, most);
    else
      choose_for_several(time, most);
    for (int s = 0; s <= p_.stages; ++s) cuts[s] = best_cut_.item[s];
  }
  /// Whether the cuts are within the limit.
  constexpr bool is_found() const { return is_found_; }

 private:
  static constexpr long none = 1L << 62;    // no bound, and the transfers of what is impossible
  static constexpr int most_tried = 1'024;  // stages placed in a search for ranks with several
  /// Stages times layers of one problem, and of all passes, for which compilers have room in a
  /// constant.
  static constexpr long most_cells = 8'000, most_passed = 24'000;

  constexpr long cells() const { return long(p_.stages) * p_.layers; }
  /// Whether there is room for another pass: the same at run time, for problems that could be cut
  /// by the compiler.
  constexpr bool may_go_on() const { return passed_ < most_passed || cells() > most_cells; }
  constexpr long* row(int s) const { return least_.item + long(s) * (p_.layers + 1); }
  constexpr long time_of(int begin, int end) const {
    return before_.item[end].time - before_.item[begin].time;
  }
  /// What the first rank of a stage with layers [begin, end) has by itself.
  constexpr long bytes_of(int s, int begin, int end) const {
    sums const &a = before_.item[begin], &b = before_.item[end];
    return p_.fixed_of(p_.rank[s * p_.replicas]) + (b.state - a.state) +
           p_.in_flight[s] * (b.kept - a.kept);
  }
  constexpr long crossing_at(int cut) const { return cut < p_.layers ? p_.crossing[cut] : 0; }
  /// Finds the layers [first_, last_] where each stage can begin if no stage takes longer.
  constexpr void bound(long time) {
    int const layers = p_.layers, stages = p_.stages;
    last_.item[0] = 0;
    for (int s = 0, at = 0; s < stages; ++s) {
      int const most = layers - stages + s + 1;
      while (at < most && time_of(last_.item[s], at + 1) <= time) ++at;
      last_.item[s + 1] = at;
    }
    first_.item[stages] = layers;
    for (int s = stages - 1, at = layers; s >= 0; --s) {
      while (at > s && time_of(at - 1, first_.item[s + 1]) <= time) --at;
      first_.item[s] = at;
    }
  }

  /// The least transfers with which layers [i, layers) can be stages s and later ones, each within
  /// a time and the memory of a rank by itself, by s and i in [first_, last_]. Returns whether that
  /// is possible for all layers; if not, next_ is a bound of memory below which the answer is the
  /// same.
  constexpr bool complete(long time, long bytes) {
    int const layers = p_.layers, stages = p_.stages;
    next_ = none;
    bound(time);
    if (first_.item[0] > 0 || last_.item[stages] < layers) return false;
    row(stages)[layers] = 0;
    for (int s = stages - 1; s >= 0; --s) {
      long const* const after = row(s + 1);
      long* const mine = row(s);
      // `ends_` has possible ends of the stage, the best and farthest first, then ever nearer ones
      // of ever more transfers.
      int const nearest = first_.item[s + 1];
      int end = last_.item[s + 1], next = end, head = 0, tail = 0;
      passed_ += last_.item[s] - first_.item[s] + end - nearest + 2;
      for (int begin = last_.item[s]; begin >= first_.item[s]; --begin) {
        for (; end > begin && end >= nearest; --end) {
          long const needed = bytes_of(s, begin, end);
          bool const is_in_time = time_of(begin, end) <= time;
          if (is_in_time && needed <= bytes) break;
          if (is_in_time && needed < next_) next_ = needed;
        }
        while (head < tail && ends_.item[head] > end) ++head;
        for (; next > begin && next >= nearest; --next) {
          if (next > end || after[next] >= none) continue;
          long const sum = after[next] + crossing_at(next);
          while (head < tail &&
                 after[ends_.item[tail - 1]] + crossing_at(ends_.item[tail - 1]) >= sum)
            --tail;
          ends_.item[tail++] = next;
        }
        mine[begin] = head < tail ? after[ends_.item[head]] + crossing_at(ends_.item[head]) : none;
      }
    }
    return row(0)[0] < none;
  }

  /// Whether cuts exist within a time and a memory of each rank.
  constexpr bool fits(long time, long bytes) {
    if (!complete(time, bytes)) return false;
    if (is_one_each_) return true;
    search(time, bytes);
    return best_bytes_ <= bytes;
  }

  // ---- a stage for each rank ----

  constexpr void choose_for_one_each(long time, long most) {
    // From cuts within the time alone to those of the least memory.
    complete(time, most);
    take_even(time, most);
    long high = fullest(), low = 0;
    while (low < high && may_go_on()) {
      long const middle = low + (high - low) / 2;
      if (complete(time, middle)) {
        take_even(time, middle);
        high = fullest();
      } else {
        low = next_;
      }
    }
    complete(time, high);
    take_even(time, high);
  }
  /// Takes the cuts of the least transfers that complete() has found, each as near as possible to
  /// its even share.
  constexpr void take_even(long time, long bytes) {
    int begin = 0;
    best_cut_.item[0] = 0;
    best_cut_.item[p_.stages] = p_.layers;
    for (int s = 0; s + 1 < p_.stages; ++s) {
      long const even = even_share(s + 1), least = row(s)[begin];
      long nearest = none;
      int const first = first_.item[s + 1];
      int cut = begin + 1;
      for (int end = first > begin ? first : begin + 1; end <= last_.item[s + 1]; ++end) {
        if (bytes_of(s, begin, end) > bytes || time_of(begin, end) > time) break;
        if (row(s + 1)[end] + crossing_at(end) != least) continue;
        // Of places as near: one after the share, the first of those; else the last before it.
        long const at = before_.item[end].time, off = distance(at, even);
        if (off < nearest || (off == nearest && (at <= even || before_.item[cut].time < even)))
          nearest = off, cut = end;
      }
      best_cut_.item[s + 1] = begin = cut;
    }
  }
  /// The bytes of the fullest rank with the best cuts, of those with one stage each.
  constexpr long fullest() const {
    long most = 0;
    for (int s = 0; s < p_.stages; ++s) {
      long const own = bytes_of(s, best_cut_.item[s], best_cut_.item[s + 1]);
      most = own > most ? own : most;
    }
    return most;
  }
  /// Quotient and remainder apart: the product of the total and s may overflow.
  constexpr long even_share(int s) const {
    long const total = before_.item[p_.layers].time;
    return total / p_.stages * s + total % p_.stages * s / p_.stages;
  }
  static constexpr long distance(long a, long b) { return a < b ? b - a : a - b; }

  // ---- several stages for a rank ----

  constexpr void choose_for_several(long time, long most) {
    complete(time, most);
    search(time, most);
  }
  /// Tries cuts within a time: first those nearest to even shares. needs: complete()
  ///
  /// law: best_cut_ has the least memory, then the least transfers, if at most `most_tried` stages
  ///      were placed; otherwise of all that were tried
  constexpr void search(long time, long bytes) {
    best_bytes_ = bytes < none ? bytes + 1 : none;
    best_crossing_ = none;
    tried_ = 0;
    for (int r = 0; r < p_.ranks; ++r) bytes_.item[r] = p_.fixed_of(r);
    place(0, 0, 0, 0, time);
  }
  /// Places stages from s on, which begin at a layer, after stages with these transfers and memory.
  constexpr void place(int s, int begin, long crossed, long most, long time) {
    if (begin < first_.item[s] || begin > last_.item[s] || row(s)[begin] >= none) return;
    if (most > best_bytes_) return;
    if (most == best_bytes_ && crossed + row(s)[begin] >= best_crossing_) return;
    if (s == p_.stages) {
      best_bytes_ = most, best_crossing_ = crossed;
      for (int i = 0; i < s; ++i) best_cut_.item[i] = cut_.item[i];
      best_cut_.item[s] = p_.layers;
      return;
    }
    cut_.item[s] = begin;
    int first = begin + 1, last = begin;  // the ends that the time allows
    while (last < p_.layers && time_of(begin, last + 1) <= time) ++last;
    if (s + 1 == p_.stages) {
      if (last == p_.layers) extend(s, begin, last, crossed, most, time);
      return;
    }
    // Outwards from the even share.
    long const even = even_share(s + 1);
    int left = last;
    while (left >= first && before_.item[left].time > even) --left;
    for (int right = left + 1; (left >= first || right <= last) && tried_ < most_tried;) {
      bool const goes_right =
          right <= last && (left < first || distance(before_.item[right].time, even) <=
                                                distance(before_.item[left].time, even));
      extend(s, begin, goes_right ? right++ : left--, crossed, most, time);
    }
  }
  /// Places stage s on layers [begin, end), and the stages after it.
  constexpr void extend(int s, int begin, int end, long crossed, long most, long time) {
    ++tried_;
    p_.for_each_rank(s, begin, end, [&](int r, long bytes) {
      bytes_.item[r] += bytes;
      most = bytes_.item[r] > most ? bytes_.item[r] : most;
    });
    place(s + 1, end, crossed + crossing_at(end), most, time);
    p_.for_each_rank(s, begin, end, [&](int r, long bytes) { bytes_.item[r] -= bytes; });
  }

  cut_problem const& p_;
  bool const is_one_each_;
  bool is_found_ = true;
  struct sums {
    long time = 0, state = 0, kept = 0;
  };
  scratch<sums> before_;       // of the layers before each
  scratch<int> first_, last_;  // by stage: see bound()
  scratch<long> least_;        // see complete()
  scratch<int> ends_;
  scratch<int> cut_, best_cut_;
  scratch<long> bytes_;  // by rank, of the stages placed so far
  long next_ = 0, best_bytes_ = 0, best_crossing_ = 0;
  long passed_ = 0;
  int tried_ = 0;
};

/// Splits layers into consecutive non-empty ranges by time, memory and transfers: see cut_search.
///
/// shape:  -> cuts[0 .. stages], ascending
/// law:    no other cuts have a slowest stage that is faster; of those as fast, none has a fullest
///         rank with fewer bytes; of those, none has fewer bytes of transfers. Under a limit: of
///         the cuts that are within it, or of the least memory if none is
/// needs:  1 <= stages <= layers; the sums are a long
/// cost:   10 to 20 passes of at most stages times layers. A constant has room for 8,000, as 16
///         stages of 500 layers have; beyond, the cuts of a constant are by time alone. From some
///         1,500 on, not all steps of the search for the least memory may be made
template <class Cuts>
constexpr void partition_by_memory(cut_problem const& p, Cuts& cuts) {
  cut_search(p).run(cuts);
}

}  // namespace pp::detail
