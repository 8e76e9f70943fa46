// SPDX-License-Identifier: BSL-1.0
//
// The order in which the leaves of a mini-batch are added: a binary tree over their numbers, in
// which neighbours are joined, then neighbouring pairs, and so on. Leaves of a rank come one after
// the other; those of replicas are there at once.
#pragma once

#include <pipe/base/bytes.hpp>
#include <pipe/runtime/description.hpp>
#include <pipe/runtime/job.hpp>

namespace pp::detail {

/// Levels of the tree over a power of two of leaves, and so the partial sums that are kept while
/// they come one by one: log2.
constexpr int levels_of(int leaves) {
  int n = 0;
  while (leaves >> (n + 1) > 0) ++n;
  return n;
}

/// Number of partial sums that leaf number `leaf` is joined with, of levels 0, 1, ...
constexpr int levels_before(int leaf) {
  int n = 0;
  while (leaf >> n & 1) ++n;
  return n;
}

/// Joins leaf number `leaf`, which has just come, with the partial sums of those before it:
/// join(level) adds the partial sum of a level to it; then, unless it is the last of the tree,
/// keep(level) makes the result the partial sum of a level.
///
/// law: the partial sum of level k is over 2^k leaves; join and keep are called for k = 0, 1, ...
template <class Join, class Keep>
constexpr void join_leaf(int leaf, int leaves, Join const& join, Keep const& keep) {
  int const levels = levels_before(leaf);
  for (int level = 0; level < levels; ++level) join(level);
  if (leaf + 1 < leaves) keep(levels);
}

/// Adds leaves that are all there: join(to, from) adds that of number `from` to that of number
/// `to`, until all are in number 0. For any number of leaves; one without a neighbour is joined on
/// a higher level.
///
/// law: for a power of two the order is that of join_leaf
template <class Join>
constexpr void join_leaves(int leaves, Join const& join) {
  for (int apart = 1; apart < leaves; apart *= 2)
    for (int to = 0; to + apart < leaves; to += 2 * apart) join(to, to + apart);
}

/// As join_leaves, but leaves the sum in number `own`: a partial sum is kept where either addend
/// is, in number `own` if that is one of them, because addition commutes.
///
/// law: add(to, from) is called for the same pairs of partial sums, whatever `own` is
template <class Add>
constexpr void join_leaves_into(int own, int leaves, Add const& add) {
  join_leaves(leaves, [&](int to, int added) {
    int const apart = added - to;
    auto const home = [&](int first) { return own >= first && own < first + apart ? own : first; };
    int const a = home(to), b = home(added);
    if (b == own)
      add(b, a);
    else
      add(a, b);
  });
}

/// use(replica) for all but number `me`, the next one first, so that not all send to the same.
template <class Use>
constexpr void for_others(int me, int replicas, Use const& use) {
  for (int i = 1; i < replicas; ++i) use((me + i) % replicas);
}

/// Bytes of gradients that are joined, and exchanged between replicas, at once.
inline constexpr long most_leaf_bucket = 8L << 20;
/// Bytes for what replicas send to a rank whose largest chunk has `summed` bytes to add up: two
/// buckets, so that one travels while the other is added.
constexpr long room_for_replicas(long summed) {
  constexpr long least = 64L << 10;  // for small models with many replicas
  long const bucket = align_up(summed < least ? least : summed);
  return 2 * (bucket < most_leaf_bucket ? bucket : most_leaf_bucket);
}
/// Rooms for prefetched mini-batches on a device. One of several leaves stays in its room until the
/// step is judged, as only the last leaf stays where runs read; the next one comes into the other.
constexpr int prefetch_rooms(int leaves) { return leaves > 1 ? 2 : 1; }
/// Whether a job's mini-batch is a sum of several runs, here or in replicas.
constexpr bool has_leaves(job const& j) { return j.leaves > 1 || j.replicas > 1; }
/// Whether a job is the last run of its step.
constexpr bool is_last_leaf(job const& j) { return j.leaf + 1 == j.leaves; }
/// Whether replicas add up what a job has computed.
constexpr bool exchanges(job const& j) { return j.replicas > 1 && is_last_leaf(j); }

}  // namespace pp::detail
