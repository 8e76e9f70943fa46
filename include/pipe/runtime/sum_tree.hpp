// SPDX-License-Identifier: BSL-1.0
//
// The order in which the accumulations of a mini-batch are added: a binary tree over the numbers of
// the accumulations, in which neighbours are joined, then neighbouring pairs, and so on.
// Accumulations of one rank come one after the other; accumulations of replicas are there at once.
// Each replica runs whole branches of the tree, so the order of the sum is the same for every
// division among replicas.
#pragma once

#include <bit>

#include <pipe/base/bytes.hpp>
#include <pipe/runtime/description.hpp>
#include <pipe/runtime/job.hpp>

namespace pp::detail {

/// The number of levels of a tree of `count` addends, log2 of their number, rounded down: the
/// partial sums that are kept at most while addends come one by one.
constexpr int levels_of(int count) {
  int n = 0;
  while (count >> (n + 1) > 0) ++n;
  return n;
}

/// The number of partial sums, of levels 0, 1, ..., with which addend `number` is joined.
constexpr int levels_before(int number) {
  int n = 0;
  while (number >> n & 1) ++n;
  return n;
}

/// Joins addend `number`, which has just come, with the partial sums of earlier addends.
/// join(level) adds the partial sum of a level to the addend. Then keep(level) makes the result the
/// partial sum of a level, unless the addend is the last of the tree.
///
/// law: the partial sum of level k is over 2^k addends; join and keep are called for k = 0, 1, ...
template <class Join, class Keep>
constexpr void join_next(int number, int count, Join const& join, Keep const& keep) {
  int const levels = levels_before(number);
  for (int level = 0; level < levels; ++level) join(level);
  if (number + 1 < count) keep(levels);
}

/// Adds addends that are all there: join(to, from) adds number `from` to number `to`, until number
/// 0 is the sum of all. For any count: an addend without a neighbour is joined on a higher level.
///
/// law: for a power of two of addends the order is that of join_next
template <class Join>
constexpr void join_tree(int count, Join const& join) {
  for (int apart = 1; apart < count; apart *= 2)
    for (int to = 0; to + apart < count; to += 2 * apart) join(to, to + apart);
}

/// As join_tree, but the sum is in addend `own` at the end. Since addition commutes, a partial sum
/// may be in the place of either addend; if one of the two is `own`, it is there.
///
/// law: add(to, from) is called for the same pairs of partial sums, whatever `own` is
template <class Add>
constexpr void join_tree_into(int own, int count, Add const& add) {
  join_tree(count, [&](int to, int added) {
    int const apart = added - to;
    auto const home = [&](int first) { return own >= first && own < first + apart ? own : first; };
    int const a = home(to), b = home(added);
    if (b == own)
      add(b, a);
    else
      add(a, b);
  });
}

/// A branch of the tree that one replica runs: 2^level accumulations.
struct sum_branch {
  int replica = 0, level = 0;
};
/// use(level) for the branches of a replica that runs `count` accumulations, the largest first: a
/// branch for each bit of the number, the fewest possible.
template <class Use>
constexpr void for_levels_of(int count, Use const& use) {
  for (int level = levels_of(count); level >= 0; --level)
    if (count >> level & 1) use(level);
}
/// The number of branches of `count` accumulations.
constexpr int branches_of(int count) { return std::popcount(unsigned(count)); }
/// The level of the last branch of `count` accumulations.
constexpr int last_level_of(int count) { return std::countr_zero(unsigned(count)); }

/// As join_next, with partial sums in places 0, 1, ... of a stack, the largest first. For any
/// count: at the end the stack has the sums of all branches but the last.
///
/// law: places < levels_of(count)
template <class Join, class Keep>
constexpr void stack_next(int number, int count, Join const& join, Keep const& keep) {
  join_next(
      number, count, [&](int level) { join(branches_of(number) - 1 - level); },
      [&](int) { keep(branches_of(number + 1) - 1); });
}

/// The division of the accumulations of a mini-batch among replicas: the number of accumulations
/// that each runs.
///
/// needs: positive numbers
/// law:   larger branches come first, equal branches by replica, so each branch begins at a
///        multiple of its size. If all replicas run the same number of accumulations, a power of
///        two, each runs consecutive accumulations
struct accumulation_division {
  int const* counts = nullptr;  ///< [replicas]
  int replicas = 0;

  /// use(branch) for all branches, in the order of their accumulations.
  template <class Use>
  constexpr void for_each_branch(Use const& use) const {
    int most = 0;
    for (int r = 0; r < replicas; ++r) most |= counts[r];
    for (int level = levels_of(most); level >= 0; --level)
      for (int r = 0; r < replicas; ++r)
        if (counts[r] >> level & 1) use(sum_branch{r, level});
  }
  /// The number in the mini-batch of the i-th accumulation that a replica runs.
  constexpr int number_of(int replica, int i) const {
    int const count = counts[replica], level = levels_of(count ^ i);  // the first bit that differs
    int before = i & ((1 << level) - 1);
    for (int r = 0; r < replicas; ++r)
      before += (counts[r] >> (level + 1) << (level + 1)) +
                (r < replica && counts[r] >> level & 1 ? 1 << level : 0);
    return before;
  }
  /// Adds the branches, which are all there: add(to, from) adds the partial sum of branch `from` to
  /// that of branch `to`, until the last branch of replica `own` is the sum of all.
  ///
  /// law: the order of the sums is that of join_tree over the accumulations, up to the order of two
  ///      addends
  template <class Add>
  constexpr void join_into(int own, Add const& add) const {
    struct sum {
      sum_branch at;
      int level;
    };
    sum waiting[32]{};  // a stack of ever smaller branches
    int count = 0;
    auto const join_last = [&] {
      sum &a = waiting[count - 2], &b = waiting[count - 1];
      bool const into_b = b.at.replica == own && b.at.level == last_level_of(counts[own]);
      into_b ? add(b.at, a.at) : add(a.at, b.at);
      a = {into_b ? b.at : a.at, a.level + 1};
      --count;
    };
    for_each_branch([&](sum_branch const& b) {
      waiting[count++] = {b, b.level};
      while (count > 1 && waiting[count - 2].level == waiting[count - 1].level) join_last();
    });
    while (count > 1) join_last();
  }
};
/// The accumulations of a mini-batch that run in this process: `count` of `all`.
struct own_accumulations {
  int count = 1, all = 1;
  int replica = 0, replicas = 1;
  int const* shares = nullptr;  ///< of several replicas: the accumulations of each

  /// The number in the mini-batch of the i-th accumulation that runs here.
  constexpr int number_of(int i) const {
    return replicas > 1 ? accumulation_division{shares, replicas}.number_of(replica, i) : i;
  }
};
/// The number of accumulations of a replica if `accumulations` are divided evenly; 1 if there are
/// more replicas than accumulations.
constexpr int even_share(int accumulations, int replicas, int replica) {
  if (accumulations <= replicas) return 1;
  return int((replica + 1L) * accumulations / replicas - long(replica) * accumulations / replicas);
}
/// The most accumulations that a replica with room for `room` even shares runs, if every other
/// replica runs at least one.
constexpr int most_accumulations(int accumulations, int replicas, int room) {
  if (accumulations <= replicas) return 1;
  long const most = long(room) * ((accumulations - 1) / replicas + 1);
  return most < accumulations - replicas + 1 ? int(most) : accumulations - replicas + 1;
}

/// use(replica) for all replicas but number `me`, from the next one on, so that replicas do not all
/// send to the same one.
template <class Use>
constexpr void for_others(int me, int replicas, Use const& use) {
  for (int i = 1; i < replicas; ++i) use((me + i) % replicas);
}

/// The most bytes of gradients that are joined, and exchanged between replicas, at once.
inline constexpr long most_bucket_bytes = 8L << 20;
/// Bytes of the room for gradients that replicas send to a rank whose largest chunk has `summed`
/// bytes to add up: two buckets, so that one bucket travels while the other is added.
constexpr long room_for_replicas(long summed) {
  constexpr long least = 64L << 10;  // for small models with many replicas
  long const bucket = align_up(summed < least ? least : summed);
  return 2 * (bucket < most_bucket_bytes ? bucket : most_bucket_bytes);
}
/// The number of rooms for prefetched mini-batches on a device. A mini-batch of several
/// accumulations stays in its room until the step is judged, as only its last accumulation stays
/// where runs read; the next mini-batch comes into the other room.
constexpr int prefetch_rooms(int accumulations) { return accumulations > 1 ? 2 : 1; }
/// Whether a job's mini-batch is a sum of several runs, here or in replicas.
constexpr bool has_accumulations(job const& j) {
  return j.part.accumulations > 1 || j.part.replicas > 1;
}
/// Whether a job is the last run of its step.
constexpr bool is_last_accumulation(job const& j) {
  return j.part.accumulation + 1 == j.part.accumulations;
}
/// Whether replicas add up the gradients and losses of a job.
constexpr bool exchanges(job const& j) { return j.part.replicas > 1 && is_last_accumulation(j); }

}  // namespace pp::detail
