// SPDX-License-Identifier: BSL-1.0
//
// Lower bounds on the time of one rank of a schedule with a flush, whose memory may be limited.
// Each looks at a window of time that is at least as long as the way of a micro-batch through the
// chunks of other ranks, and in which the rank can only do the work that its memory holds.
// docs/schedules/floors.md has the proofs, with pictures.
#pragma once

#include <climits>

#include <pipe/schedule/placement.hpp>
#include <pipe/schedule/problem.hpp>
#include <pipe/schedule/scratch.hpp>

namespace pp {

namespace schedules {

/// Why a floor is not lower: what keeps a rank from ending earlier. docs/schedules/floors.md has
/// the proofs.
enum class floor_reason : unsigned char {
  work,          ///< all that the rank does, and the way to it
  ways,          ///< all F and B of the rank, and the way to it and back
  warm_up,       ///< the Fs that there are, and that its memory holds, before its first B
  last_forward,  ///< what its memory holds beside its last F
  turns,         ///< how many micro-batches its memory holds at once
  area           ///< memory times time
};

/// A lower bound of a time, and where it comes from.
struct floor_bound {
  long time = 0;
  int rank = 0;
  floor_reason why = floor_reason::work;
};

}  // namespace schedules

namespace detail {

using namespace schedules;

constexpr void raise(long& most, long to) { most = to > most ? to : most; }
constexpr void raise(floor_bound& most, long to, int rank, floor_reason why) {
  if (to > most.time) most = {to, rank, why};
}

/// Larger than any memory limit; halves of a long have room for sums.
inline constexpr long any_amount = LONG_MAX / 4;

/// A safe distance from a quotient of doubles, whose operands may be too large for a long.
inline constexpr double double_rounding = 1e-12;
/// law: least_of(x) <= an integer of at least x, most_of(x) >= an integer of at most x
constexpr long most_of(double x) { return static_cast<long>(x * (1 + double_rounding)); }
constexpr long least_of(double x) {
  long const down = static_cast<long>(x * (1 - double_rounding));
  return static_cast<double>(down) < x * (1 - double_rounding) ? down + 1 : down;
}
/// x times / per
constexpr double scaled(long x, long times, long per) {
  return static_cast<double>(x) * static_cast<double>(times) / static_cast<double>(per);
}

/// The least time of F: the part that the backward of a pair hides is left out.
constexpr long least_forward(chunk_cost const& c) {
  return c.forward > c.hidden ? c.forward - c.hidden : 0;
}

/// Work that needs memory while it waits: at most `count` pieces, each of `memory` and of `work`.
struct held_work {
  long memory = 0, work = 0, count = 0;
};

/// Whether a piece has more work for its memory than another.
constexpr bool is_denser(held_work const& a, held_work const& b) {
  return static_cast<double>(a.work) * static_cast<double>(b.memory) >
         static_cast<double>(b.work) * static_cast<double>(a.memory);
}

constexpr long greatest_divisor(long a, long b) {
  while (b != 0) {
    long const rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

/// An upper bound of the work that `room` holds of `items[0, size)`, whose counts are used up.
///
/// law: exact where all items have one memory, or two and the same work for each; at most the sum
/// of
///      all pieces
constexpr long most_work(long room, held_work* items, int size) {
  long all = 0, unit = 0;
  // Of the items of each memory: the most work, and the number; only for two kinds.
  held_work kinds[2]{};
  int found_kinds = 0;
  for (int i = 0; i < size; ++i) {
    held_work const& item = items[i];
    all += item.work * item.count;
    unit = greatest_divisor(unit, item.memory);
    if (item.count == 0 || item.work == 0 || found_kinds > 2) continue;
    int which = 0;
    while (which < found_kinds && kinds[which].memory != item.memory) ++which;
    if (which == found_kinds && ++found_kinds > 2) continue;
    if (kinds[which].work < item.work) kinds[which].work = item.work;
    kinds[which].memory = item.memory;
    kinds[which].count += item.count;
  }
  if (unit == 0 || room >= any_amount) return all;
  if (room < 0) return 0;
  long least = all;
  if (found_kinds <= 2) {
    long most = 0;
    bool const second_is_larger = kinds[1].memory > kinds[0].memory;
    held_work const &one = kinds[second_is_larger ? 1 : 0],
                    &other = kinds[second_is_larger ? 0 : 1];
    for (long n = 0; n <= one.count && n * one.memory <= room; ++n) {
      long const fit = other.memory > 0 ? (room - n * one.memory) / other.memory : other.count;
      long const work = n * one.work + (fit < other.count ? fit : other.count) * other.work;
      most = work > most ? work : most;
    }
    least = most < least ? most : least;
  }
  // The pieces with the most work for their memory first, and a share of the last.
  long sum = 0, space = room / unit * unit;
  for (int round = 0; round < size; ++round) {
    int best = -1;
    for (int i = 0; i < size; ++i)
      if (items[i].count > 0 && (best < 0 || is_denser(items[i], items[best]))) best = i;
    if (best < 0) break;
    held_work& item = items[best];
    long const fit = item.memory == 0 ? item.count : space / item.memory;
    if (fit < item.count) {
      sum += fit * item.work + most_of(scaled(space - fit * item.memory, item.work, item.memory));
      break;
    }
    sum += item.count * item.work;
    space -= item.count * item.memory;
    item.count = 0;
  }
  return sum < least ? sum : least;
}

/// The ways of a micro-batch: prefix sums over the chunks of F and hops on the way down, and of B
/// and hops on the way back.
struct flush_ways {
  scratch<long> down;  ///< by chunk: from the start of F of chunk 0 to the start of F of the chunk
  scratch<long> back;  ///< by chunk: from the end of its B to the end of B of chunk 0
  long turn = 0;       ///< from the start of F of chunk 0 to the end of B of chunk 0, by all chunks

  /// replica: of a micro-batch, by which its ranks are known
  template <pipeline_problem Problem>
  constexpr flush_ways(Problem const& problem, placement where, int replica = 0)
      : down(problem.chunks), back(problem.chunks) {
    int const p = problem.ranks;
    for (int c = 1; c < problem.chunks; ++c) {
      int const above = rank_of(where, p, c - 1, replica), rank = rank_of(where, p, c, replica);
      chunk_cost const& cost = problem.cost(c - 1);
      down.item[c] = down.item[c - 1] + least_forward(cost) + problem.hop_time(above, rank, c - 1);
      back.item[c] = back.item[c - 1] + cost.backward_input + problem.hop_time(rank, above, c - 1);
    }
    int const last = problem.chunks - 1;
    turn = down.item[last] + least_forward(problem.cost(last)) + problem.cost(last).backward_input +
           back.item[last];
  }
  /// From the start of F of chunk `from` to the end of B of chunk `to` of the same micro-batch.
  constexpr long way(int from, int to) const { return turn - down.item[from] - back.item[to]; }
};

/// The memory that a chunk still holds when its B has ended.
constexpr long after_b(chunk_cost const& c) { return c.memory.forward + c.memory.backward_input; }
/// The memory of a rank for chunks of these costs: cost(i), 0 <= i < held. Without a limit, or
/// where an action gives back more than was taken, any amount.
template <pipeline_problem Problem, class Cost>
constexpr long rank_room(Problem const& problem, int rank, int held, Cost const& cost) {
  long const own = memory_limit(problem, rank);
  if (own <= 0 || own >= any_amount) return any_amount;
  for (int i = 0; i < held; ++i) {
    memory_change const& x = cost(i).memory;
    if (x.forward < 0 || x.forward + x.backward_input < 0 ||
        x.forward + x.backward_input + x.backward_weight < 0)
      return any_amount;
  }
  return own;
}

/// What micro-batches hold on a rank, each from its F to the end of its W.
struct lives {
  double area = 0;             ///< memory times time
  long time = 0;               ///< of all
  long smallest = any_amount;  ///< memory that one of them holds

  /// Adds `count` micro-batches in a chunk. way: from the start of F to the end of B
  constexpr void add(chunk_cost const& cost, long way, long count) {
    long const a = cost.memory.forward, r = after_b(cost), in_b = a > r ? a : r;
    smallest = a < smallest ? a : smallest;
    smallest = r < smallest ? r : smallest;
    time += (way + cost.backward_weight) * count;
    area += (static_cast<double>(a) * static_cast<double>(way - cost.backward_input) +
             static_cast<double>(in_b) * static_cast<double>(cost.backward_input) +
             static_cast<double>(r) * static_cast<double>(cost.backward_weight)) *
            static_cast<double>(count);
  }
  /// By Little's law: the rank's memory times its time is at least the area; and so with the number
  /// of chunks that fit instead of memory.
  constexpr long least_time(long room) const {
    long found = least_of(area / static_cast<double>(room));
    if (smallest > 0 && room >= smallest) raise(found, least_of(scaled(time, 1, room / smallest)));
    return found;
  }
};

/// Lower bounds of a rank, from the start of its first F.
struct rank_floor {
  floor_bound idle;          ///< the time without work before its first B
  floor_bound last_forward;  ///< the start of its last F
  floor_bound time;          ///< the end of its last W
};

/// The bounds of one rank.
///
/// needs: replicas(where) == 1
template <pipeline_problem Problem>
class memory_floor {
 public:
  constexpr memory_floor(Problem const& problem, placement where, flush_ways const& ways)
      : problem_(problem), where_(where), ways_(ways) {}

  constexpr rank_floor of(int rank) const {
    auto result = rank_floor{};
    int const first = chunk(rank, 0), last = chunk(rank, held() - 1), m = problem_.micro_batches;
    long const room = room_on(rank);
    bool const is_limited = room < any_amount;
    auto items = scratch<held_work>(2 * held());
    long all_memory = 0, all_f = 0, all_b_and_w = 0;
    for (int i = 0; i < held(); ++i) {
      chunk_cost const& c = problem_.cost(chunk(rank, i));
      all_memory += c.memory.forward;
      all_f += least_forward(c);
      all_b_and_w += c.backward_input + c.backward_weight;
      items.item[i] = {c.memory.forward, least_forward(c), m};
    }

    // Before the first B, which is of the last chunk, there are only Fs.
    chunk_cost const& turning = problem_.cost(last);
    long const more = turning.memory.backward_input > 0 ? turning.memory.backward_input : 0;
    long const before = most_work(is_limited ? room - more : room, items.item, held());
    raise(result.idle, ways_.way(first, last) - turning.backward_input - before, rank,
          floor_reason::warm_up);
    // Before the first F of the last chunk there are only Fs of the others, one of each
    // micro-batch.
    for (int i = 0; i + 1 < held(); ++i) items.item[i].count = m;
    long const others_before =
        most_work(is_limited ? room - turning.memory.forward : room, items.item, held() - 1);
    long const idle_before = ways_.down.item[last] - ways_.down.item[first] - others_before;
    raise(result.idle, idle_before, rank, floor_reason::warm_up);

    // After the start of the last F: what that micro-batch still needs, and what the memory beside
    // it holds.
    for (int i = 0; i < held(); ++i) {
      chunk_cost const& c = problem_.cost(chunk(rank, i));
      items.item[2 * i] = {c.memory.forward, c.backward_input + c.backward_weight, m - 1};
      items.item[2 * i + 1] = {after_b(c), c.backward_weight, m - 1};
    }
    long others = most_work(is_limited ? room - all_memory : room, items.item, 2 * held());
    if (others > (m - 1) * all_b_and_w) others = (m - 1) * all_b_and_w;
    long const work = m * (all_f + all_b_and_w);
    bool const apart = is_limited && all_memory * m > room;
    long const idle = result.idle.time;
    long const earlier_idle = apart ? idle : idle_before > 0 ? idle_before : 0;
    result.last_forward = {work - all_b_and_w - least_forward(turning) - others + earlier_idle,
                           rank, floor_reason::last_forward};
    raise(result.last_forward, last_by_turns(rank, room), rank, floor_reason::turns);

    result.time = {work + idle, rank, idle > 0 ? result.idle.why : floor_reason::work};
    raise(result.time,
          result.last_forward.time + ways_.way(last, first) + problem_.cost(first).backward_weight,
          rank, result.last_forward.why);
    if (is_limited && room > 0) raise(result.time, by_area(rank, room), rank, floor_reason::area);
    return result;
  }

 private:
  constexpr int held() const { return problem_.chunks / problem_.ranks; }
  constexpr int chunk(int rank, int index) const {
    return chunk_on(where_, problem_.ranks, rank, index);
  }
  constexpr long room_on(int rank) const {
    return rank_room(problem_, rank, held(),
                     [&](int i) -> chunk_cost const& { return problem_.cost(chunk(rank, i)); });
  }
  /// The start of the last F. Only n micro-batches fit between an F of chunk `to` and the end of B
  /// or W of an earlier chunk `from`, so each F of chunk `to` waits for the n-th before it.
  constexpr long last_by_turns(int rank, long room) const {
    long most = 0;
    for (int to = 0; to < held(); ++to) {
      long beside = room;  // when F of chunk `to` starts
      for (int i = 0; i <= to; ++i) beside -= problem_.cost(chunk(rank, i)).memory.forward;
      for (int from = 0; from <= to; ++from) {
        chunk_cost const& c = problem_.cost(chunk(rank, from));
        raise(most, last_by_turns(rank, from, to, beside, c.memory.forward, 0));
        long const less = after_b(c) < c.memory.forward ? after_b(c) : c.memory.forward;
        raise(most, last_by_turns(rank, from, to, beside, less, c.backward_weight));
      }
    }
    return most;
  }
  constexpr long last_by_turns(int rank, int from, int to, long beside, long memory,
                               long after) const {
    if (beside < 0) return 0;
    int const first = chunk(rank, 0), last = chunk(rank, held() - 1), m = problem_.micro_batches;
    int const at = chunk(rank, to);
    long const at_once = memory > 0 && beside / memory < m ? beside / memory + 1 : m,
               turns = (m - 1) / at_once;
    long slowest = 0;  // F on the way: micro-batches follow each other no faster
    for (int c = first; c <= at; ++c) raise(slowest, least_forward(problem_.cost(c)));
    return (m - 1 - turns * at_once) * slowest +
           turns * (ways_.way(at, chunk(rank, from)) + after) + ways_.down.item[last] -
           ways_.down.item[first];
  }

  constexpr long by_area(int rank, long room) const {
    auto all = lives{};
    for (int i = 0; i < held(); ++i) {
      int const c = chunk(rank, i);
      all.add(problem_.cost(c), ways_.way(c, c), problem_.micro_batches);
    }
    return all.least_time(room);
  }

  Problem const& problem_;
  placement where_;
  flush_ways const& ways_;
};

}  // namespace detail

}  // namespace pp
