// SPDX-License-Identifier: BSL-1.0
//
// The division of a chunk's gradients among replicas: into buckets, which are exchanged one by one,
// and of each bucket into one shard for every replica. With ZeRO a replica updates the parameters
// that its shards cover, and no other replica has the optimizer state of these.
#pragma once

#include <pipe/base/bytes.hpp>
#include <pipe/runtime/description.hpp>
#include <pipe/runtime/sum_tree.hpp>

namespace pp::detail {

/// Whether a position in a chunk's parameters or gradients is of a parameter that replicas divide,
/// and whether a parameter is divided: see ZeRO.
constexpr bool is_divided(chunk_description const& c, long at) { return at < c.sizes.divided; }
constexpr bool is_divided(chunk_description const& c, parameter_place const& p) {
  return p.trained && !p.is_buffer && is_divided(c, p.offset);
}

/// The cuts of chunk c, whose elements have `width` bytes, for a number of replicas. Positions are
/// in the range of gradients and sums: bytes from the start of the chunk's gradients.
///
/// law: every cut is at the start of a gradient_block, so that one replica measures a whole block
/// law: buckets are consecutive and cover the chunk, and shards their bucket; some may be empty
struct shard_cuts {
  chunk_description const& c;
  long width = 4;
  int replicas = 1;

  /// use(place) for the parameters that replicas divide, in the order of their offsets. Defined
  /// before its uses: in a constant clang++ does not see a later template.
  template <class Use>
  constexpr void for_each_divided(Use const& use) const {
    if (c.sizes.divided == 0) return;
    for (parameter_place const& p : c.parameters)
      if (is_divided(c, p)) use(p);
  }
  constexpr int buckets() const { return divided_buckets() + count_in(rest()); }
  /// The number of buckets of divided parameters, which come first: each such parameter has buckets
  /// of its own.
  constexpr int divided_buckets() const {
    int count = 0;
    for_each_divided([&](parameter_place const& p) { count += buckets_of(p); });
    return count;
  }
  /// The start of a bucket; for the number behind the last bucket, the end of all.
  constexpr long begin_of(int bucket) const {
    long begin = -1;
    for_each_divided([&](parameter_place const& p) {
      if (begin >= 0) return;
      if (int const n = buckets_of(p); bucket >= n)
        bucket -= n;
      else
        begin = p.offset + bucket * most_bucket_bytes;
    });
    return begin >= 0 ? begin : block_before(c.sizes.divided + bucket * most_bucket_bytes);
  }
  /// The start of shard s of a bucket; for s = replicas, the end of the bucket.
  constexpr long begin_of(int bucket, int s) const {
    long const begin = begin_of(bucket), end = begin_of(bucket + 1);
    if (s == 0 || s == replicas) return s == 0 ? begin : end;
    long const at = block_before(begin + (end - begin) / replicas * s);
    return at < begin ? begin : at;
  }
  /// The number of a replica's shard of a bucket. The number differs from bucket to bucket, since
  /// the last shards may be smaller.
  constexpr int shard_of(int bucket, int replica) const {
    return int((replica + long(replicas - 1) * bucket) % replicas);
  }
  constexpr int replica_of(int bucket, int shard) const { return (shard + bucket) % replicas; }
  /// The bucket that has the byte at position `at`.
  ///
  /// needs: at < c.summed_bytes()
  constexpr int bucket_of(long at) const {
    if (at >= c.sizes.divided) {
      int const bucket = divided_buckets() + int((at - c.sizes.divided) / most_bucket_bytes);
      return bucket + (at >= begin_of(bucket + 1));
    }
    int bucket = 0;
    for_each_divided([&](parameter_place const& p) {
      if (at >= p.offset + bytes_of(p))
        bucket += buckets_of(p);
      else if (at >= p.offset)
        bucket += int((at - p.offset) / most_bucket_bytes);
    });
    return bucket;
  }
  /// The replica whose shard has the byte at position `at`.
  ///
  /// needs: at < c.summed_bytes()
  constexpr int owner_of(long at) const {
    int const bucket = bucket_of(at);
    int s = 0;
    while (at >= begin_of(bucket, s + 1)) ++s;
    return replica_of(bucket, s);
  }
  /// Size of the largest shard.
  constexpr long largest() const {
    long most = 0;
    for (int b = 0; b < buckets(); ++b)
      for (int s = 0; s < replicas; ++s)
        if (long const n = begin_of(b, s + 1) - begin_of(b, s); n > most) most = n;
    return most;
  }
  /// The position of a parameter's gradient or of a buffer's sum; -1 if there is none.
  constexpr long place_of(parameter_place const& p) const {
    if (p.is_buffer) return p.is_committed() ? c.sums - c.gradients + p.offset : -1;
    return p.trained ? p.offset : -1;
  }
  constexpr long block_bytes() const { return gradient_block::most_elements * width; }
  /// Bytes of a parameter, padded.
  constexpr long bytes_of(parameter_place const& p) const { return align_up(p.elements() * width); }
  /// The number of buckets of a divided parameter.
  constexpr int buckets_of(parameter_place const& p) const { return count_in(bytes_of(p)); }
  /// use(bucket, begin, end) for a replica's shards of divided parameters.
  template <class Use>
  constexpr void for_each_divided_shard(int replica, Use const& use) const {
    for (int b = 0, n = divided_buckets(); b < n; ++b) {
      int const s = shard_of(b, replica);
      use(b, begin_of(b, s), begin_of(b, s + 1));
    }
  }

 private:
  constexpr long rest() const { return c.summed_bytes() - c.sizes.divided; }
  static constexpr int count_in(long bytes) {
    return int((bytes + most_bucket_bytes - 1) / most_bucket_bytes);
  }
  /// The start of the last block that begins at or before a position; at the end of all, the end.
  constexpr long block_before(long at) const {
    if (at >= c.summed_bytes()) return c.summed_bytes();
    long last = 0;
    for (parameter_place const& p : c.parameters) {
      long const begin = place_of(p);
      if (begin < 0 || begin > at) continue;
      long const size = p.elements() * width, within = at - begin < size ? at - begin : size - 1;
      long const start = begin + (within < 0 ? 0 : within / block_bytes() * block_bytes());
      if (start > last) last = start;
    }
    return last;
  }
};

/// Whether all replicas need the sum of a bucket of a chunk, though each updates only its shards.
/// They do if the bucket has sums of buffers, gradients of a shared parameter, which are added up
/// over its places, or gradients of a tensor that is updated as a whole.
constexpr bool is_for_all(pipeline_description const& d, shard_cuts const& cuts, int bucket) {
  chunk_description const& c = cuts.c;
  long const begin = cuts.begin_of(bucket), end = cuts.begin_of(bucket + 1);
  auto const meets = [&](long first, long bytes) { return first < end && begin < first + bytes; };
  if (meets(c.sums - c.gradients, c.state - c.sums)) return true;
  for (update_range const& u : c.updates) {
    if (u.whole && meets(u.begin * cuts.width, (u.end - u.begin) * cuts.width)) return true;
  }
  for (tie const& t : d.ties) {
    auto const is_here = [&](int chunk, parameter_place const& p) {
      return d.chunk + chunk == &c && p.trained && meets(p.offset, p.elements() * cuts.width);
    };
    if (is_here(t.chunk, t.place) || is_here(t.owner_chunk, t.owner)) return true;
  }
  return false;
}

/// use(range) for the parts of a chunk's update ranges that a replica updates. A range that is one
/// whole tensor is updated by the owner of its first byte. The state of the first part begins at
/// `state`, and each further part's state follows the one before; returns the end of all, in
/// elements.
///
/// law: the parts of all replicas are disjoint and cover the ranges. A single replica has each
///      range as one part, or as two parts if only the first elements are of divided parameters
template <class Use>
constexpr long for_each_owned(shard_cuts const& cuts, int replica, long state, Use const& use) {
  for (update_range part : cuts.c.updates) {
    long const begin = part.begin, end = part.end, each = part.state_size / (end - begin);
    auto const take = [&](long size) {
      part.state = state;
      state += part.state_size = size;
      use(part);
    };
    if (part.whole) {
      if (cuts.owner_of(begin * cuts.width) == replica) take(part.state_size);
      continue;
    }
    // Shards that meet are one part, except where divided parameters end.
    long const divided = cuts.c.sizes.divided / cuts.width;
    auto const end_part = [&] {
      if (part.begin == part.end) return;
      part.shape.columns = part.end - part.begin;
      take(each * part.shape.columns);
    };
    part.begin = part.end = begin;
    for (int b = 0; b < cuts.buckets(); ++b) {
      int const s = cuts.shard_of(b, replica);
      long const from = cuts.begin_of(b, s) / cuts.width, to = cuts.begin_of(b, s + 1) / cuts.width;
      long const first = from < begin ? begin : from, last = to < end ? to : end;
      if (first >= last) continue;
      if (first != part.end || first == divided) {
        end_part();
        part.begin = first;
      }
      part.end = last;
    }
    end_part();
  }
  return state;
}

/// The end of a rank's arena, whose size depends on the number of replicas. It begins with partial
/// sums over the accumulations. With ZeRO follow the optimizer state of what this replica updates,
/// and this replica's parts of divided gradients and values; then a ring for divided gradients and
/// a ring for divided values, in which the parameters that a layer needs are whole. At the end is
/// room for what other replicas send, in two halves.
///
/// units: bytes, offsets from the start of the arena
struct arena_end {
  long sums = 0, state = 0, gradients = 0, values = 0;
  long state_bytes = 0;  ///< here, or in the memory of the host: see OffloadState
  long gradient_ring = 0, gradient_ring_bytes = 0, value_ring = 0, value_ring_bytes = 0;
  long room = 0, room_bytes = 0, end = 0;
};
/// The copies of a divided parameter that kernels read, behind its values: as values of fewer bits,
/// if there are any, and transposed.
///
/// units: bytes from the start of the values
struct divided_copies {
  bool is_narrow = false, is_transposed = false;
  long narrow = 0, size = 0;  ///< the end of the values; bytes of each copy
  constexpr divided_copies() = default;
  constexpr divided_copies(long bytes, long width, long value_width, parameter_place const& p)
      : is_narrow(value_width < width), is_transposed(p.transposed >= 0), narrow(bytes),
        size(align_up(bytes / width * value_width)) {}
  constexpr long transposed() const { return narrow + (is_narrow ? size : 0); }
  constexpr long end() const { return transposed() + (is_transposed ? size : 0); }
};

/// The facts of a pipeline on which the end of an arena depends.
struct arena_facts {
  chunk_description const* chunk = nullptr;
  int chunks = 1;
  int accumulations = 1, zero = 0;  ///< see GradientAccumulation and ZeRO
  long width = 4;                   ///< bytes of an element
  int accumulation_room = 1;        ///< see pipeline_description
  bool divides_gradients = false;   ///< see pipeline_description
  long value_width = 4;             ///< bytes of an element of what kernels read

  /// Calls use(cuts) for each chunk of a rank.
  template <class Use>
  constexpr void for_each_cuts(int rank, int replicas, Use const& use) const {
    for (int c = 0; c < chunks; ++c)
      if (chunk[c].rank == rank) use(shard_cuts{chunk[c], width, replicas});
  }
  /// Bytes of a ring: twice those of the largest layer's divided parameters, so that the parameters
  /// of one layer are in the ring while those of another come or go. copies: with the copies that
  /// kernels read
  constexpr long ring_bytes(int rank, bool copies) const {
    long most = 0;
    for_each_cuts(rank, 1, [&](shard_cuts const& cuts) {
      long sum = 0;
      int layer = -1;
      cuts.for_each_divided([&](parameter_place const& p) {
        if (p.layer != layer) sum = 0;
        layer = p.layer;
        long const bytes = cuts.bytes_of(p);
        sum += copies ? divided_copies{bytes, width, value_width, p}.end() : bytes;
        if (sum > most) most = sum;
      });
    });
    return 2 * most;
  }
};
constexpr arena_end end_of_arena(arena_facts const& of, rank_description const& rank, int number,
                                 int replicas, int replica) {
  arena_end e;
  e.sums = rank.fixed_bytes;
  int const levels =
      levels_of(most_accumulations(of.accumulations, replicas, of.accumulation_room));
  e.end = e.sums + levels * rank.level_bytes;
  auto const take = [&](long bytes) {
    long const at = e.end;
    e.end += align_up(bytes);
    return at;
  };
  long state = 0, shard = 0, divided = 0;
  if (of.zero > 0)
    of.for_each_cuts(number, replicas, [&](shard_cuts const& cuts) {
      state = for_each_owned(cuts, replica, state, [](update_range const&) {});
      if (long const n = replicas == 1 ? 0 : cuts.largest(); n > shard) shard = n;
      cuts.for_each_divided_shard(replica,
                                  [&](int, long begin, long end) { divided += end - begin; });
    });
  e.state_bytes = align_up(state * of.width);
  e.state = take(rank.host_bytes > 0 ? 0 : e.state_bytes);
  e.gradients = take(of.divides_gradients ? divided : 0);
  e.values = take(of.zero > 2 ? divided : 0);
  e.gradient_ring_bytes = of.divides_gradients ? of.ring_bytes(number, false) : 0;
  e.gradient_ring = take(e.gradient_ring_bytes);
  e.value_ring_bytes = of.zero > 2 ? of.ring_bytes(number, true) : 0;
  e.value_ring = take(e.value_ring_bytes);
  // The room is also for the squared norms of all blocks, and for one number of each branch.
  long half = (replicas - 1) * shard;
  for (long const least : {rank.block_count * 2 * long(sizeof(double)),
                           replicas * (levels + 1) * long(sizeof(double))})
    if (half < least) half = least;
  bool const has_room = rank.replica_room_bytes > 0;  // as on a device
  e.room_bytes = of.zero > 0 && replicas > 1 && !has_room ? 2 * align_up(half) : 0;
  e.room = take(e.room_bytes);
  return e;
}
constexpr arena_end end_of_arena(pipeline_description const& d, long width, int rank, int replicas,
                                 int replica) {
  return end_of_arena({d.chunk, d.chunks, d.accumulations, d.zero, width, d.accumulation_room,
                       d.divides_gradients, size_of(d.value_type)},
                      d.rank[rank], rank, replicas, replica);
}

}  // namespace pp::detail
