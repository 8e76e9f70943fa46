// SPDX-License-Identifier: BSL-1.0
//
// The result of fusing a list of ops: segments and distinct groups, and the groups that are known
// while the list is fused.
#pragma once

#include <cstdint>

#include <pipe/base/hash.hpp>
#include <pipe/base/static_vector.hpp>
#include <pipe/base/view.hpp>
#include <pipe/passes/group.hpp>

namespace pp::detail {

/// A list of ops as a list of launches.
///
/// law: the segments cover the ops in order; segments with the same group number have equal
///      descriptions; `distinct[g]` is the first segment of group g; the operands of segment s, by
///      index, are operands[s.first], operands[s.first + 1] ...
struct fused_view {
  view<segment> segments;
  view<operand> operands;
  view<int> distinct;
};

/// The output of fuse(): at most a segment and a distinct group per op, and as many operands as the
/// ops read and write.
struct fused_sinks {
  sink<segment> segments;
  sink<operand> operands;
  sink<int> distinct;
  /// Views of the parts that are filled; the memory is the caller's.
  constexpr fused_view filled() const {
    return fused_view{segments.filled(), operands.filled(), distinct.filled()};
  }
};

/// A hash of a kernel group.
///
/// law: equal groups have equal hashes; callers check equality as well
constexpr std::uint64_t hash_of(group const& g) {
  fnv_hash hash;
  auto const add = [&](long number) { hash.add(std::uint64_t(number)); };
  add(long(g.anchor) + 64L * g.operands);
  add(g.rows + (long(g.columns) << 24));
  add(g.attributes.hash());
  for (pointwise_op const& s : g.prologue)
    add(long(s.kind) + 64L * (s.operand + 1 + 64L * (s.store + 1 + 64L * s.leaf)));
  add(-1);
  for (pointwise_op const& s : g.epilogue)
    add(long(s.kind) + 64L * (s.operand + 1 + 64L * (s.store + 1 + 64L * s.leaf)));
  return hash.value;
}

/// Working memory of fuse(), initially 0: one more item than ops; an item for each operand.
struct fuse_scratch {
  /// By distinct group.
  std::uint64_t* hashes = nullptr;
  /// By distinct group, and one item for the start of the list: see known_groups.
  int* after = nullptr;
  /// The sources of the operands of a copy: see fused_copies.
  int* sources = nullptr;
};

/// The distinct groups found so far.
struct known_groups {
  static_vector<group, 32> first;  // the first groups, kept since it takes time to describe a group
                                   // again; most models have no more
  std::uint64_t* hashes;
  int* after;  // by group: 1 + the group that last followed it, as models repeat themselves
  int count = 0, before;

  /// ops: the length of the list. No group has this number, so the number stands for the group
  ///      before the first one.
  constexpr known_groups(fuse_scratch scratch, int ops)
      : hashes(scratch.hashes), after(scratch.after), before(ops) {}

  /// The number of group g, perhaps a new one. describe(id) describes group id.
  ///
  /// cost: one comparison if g has followed the group before it the last time, too, else a search
  ///       by hash
  template <class Describe>
  constexpr int number(group const& g, Describe const& describe) {
    int id = after[before] - 1;
    if (id < 0 || id >= int(first.size()) || !(first.items[id] == g)) id = search(g, describe);
    after[before] = id + 1;
    before = id;
    return id;
  }
  /// The number of group g by hash and equality; a new one if it is not known.
  template <class Describe>
  constexpr int search(group const& g, Describe const& describe) {
    std::uint64_t const h = hash_of(g);
    for (int id = 0; id < count; ++id)
      if (hashes[id] == h && (id < int(first.size()) ? first[id] : describe(id)) == g) return id;
    hashes[count] = h;
    if (first.size() < first.capacity()) first.push_back(g);
    return count++;
  }
};

}  // namespace pp::detail
