// SPDX-License-Identifier: BSL-1.0
//
// The shards of a rank: the parameters that the rank updates. Without ZeRO these are all parameters
// of the rank; with ZeRO, the part that this replica owns and whose optimizer state it has. Ranges
// of memory through which replicas give each other their results belong to the shards.
#pragma once

#include <pipe/base/config.hpp>
#include <pipe/base/heap_array.hpp>
#include <pipe/base/view.hpp>
#include <pipe/runtime/description.hpp>
#include <pipe/runtime/host/core/rank_updates.hpp>
#include <pipe/runtime/shards.hpp>
#include <pipe/transport/transport.hpp>

namespace pp::detail {

/// The shards of one rank: this replica's shard, and the places of the other replicas' shards.
template <class T>
class rank_shards : public rank_updates<T> {
  using all = rank_updates<T>;
  using all::updates_, all::first_update_, all::gradients_;

 public:
  /// blocks[count]: those of the rank's gradients, in the order of rank_description::blocks
  [[gnu::cold]] void assemble(pipeline_description const& d, int rank, char* memory,
                              process_place const& place, arena_end const& end,
                              gradient_block const* blocks, int count) {
    d_ = &d, memory_ = memory, end_ = end;
    rank_ = rank, me_ = place.replica, replicas_ = place.replicas;
    if (d.zero == 0) return all::assemble(d, rank, memory, blocks, count);
    list_shards();
    list_updates();
    list_gradients({blocks, count});
    if (replicas_ == 1) return;
    list_values();
    list_squares({blocks, count});
  }

  /// Whether this replica measures a block: if replicas divide the block's bucket, only blocks of
  /// this replica's shards.
  bool measures(long block) const {
    return owner_.size() == 0 || owner_[block] < 0 || is_own(block);
  }
  /// This replica's part of one bucket of a divided parameter's gradient; own_values: of its values
  /// (ZeRO<3>).
  ///
  /// post: null if `at` is a position in a shard of another replica
  T* own_gradients(int chunk, long at) const { return shard(end_.gradients, chunk, at); }
  T* own_values(int chunk, long at) const { return shard(end_.values, chunk, at); }

  /// Copies the squared norms of this replica's blocks to the memory from which gather() sends
  /// them; unpack: copies the norms of other replicas' blocks from the memory to which gather()
  /// receives them.
  void pack(gradient_block const* blocks) {
    for (long i = 0; i < owner_.size(); ++i)
      if (is_own(i)) {
        double* const to = squares() + 2 * place_[i];
        to[0] = blocks[i].square, to[1] = blocks[i].clamped_square;
      }
  }
  void unpack(gradient_block* blocks) const {
    for (long i = 0; i < owner_.size(); ++i)
      if (owner_[i] >= 0 && !is_own(i)) {
        double const* const from = squares() + 2 * place_[i];
        blocks[i].square = from[0], blocks[i].clamped_square = from[1];
      }
  }
  /// The ranges of replica_sum::gather for squared norms, and for updated parameters.
  replica_range squares_of(int replica, long number) const {
    if (number > 0 || owner_.size() == 0) return {};
    long const begin = first_square_[replica], n = first_square_[replica + 1] - begin;
    return {reinterpret_cast<char*>(squares() + 2 * begin), n * 2 * long(sizeof(double))};
  }
  replica_range values_of(int replica, long number) const {
    if (first_range_.size() == 0) return {};
    long const i = first_range_[replica] + number;
    return i < first_range_[replica + 1] ? ranges_[i] : replica_range{};
  }

 private:
  static constexpr long width = sizeof(T);
  /// This replica's part of a bucket of a divided parameter: positions, and the bytes of such parts
  /// before it.
  struct shard_range {
    int chunk = 0;
    long begin = 0, end = 0, before = 0;
  };

  bool is_own(long block) const { return owner_[block] == me_; }
  /// The squared norms of blocks that replicas divide, in the order of their owners.
  ///
  /// shape: [blocks, 2]: before and after clipping by value
  double* squares() const { return reinterpret_cast<double*>(memory_ + end_.room); }
  /// The cuts of a chunk among all replicas.
  shard_cuts cuts_of(int chunk) const { return {d_->chunk[chunk], width, replicas_}; }
  /// use(chunk) for the chunks of the rank.
  template <class Use>
  void for_each_chunk(Use const& use) const {
    for (int c = 0; c < d_->chunks; ++c)
      if (d_->chunk[c].rank == rank_) use(c);
  }
  /// An address in a region of this replica's parts.
  ///
  /// post: null for a position of another replica
  T* shard(long region, int chunk, long at) const {
    for (shard_range const& s : shard_ranges_)
      if (s.chunk == chunk && at >= s.begin && at < s.end)
        return reinterpret_cast<T*>(memory_ + region + s.before + at - s.begin);
    return nullptr;
  }
  T* at(long offset) const { return reinterpret_cast<T*>(memory_ + offset); }

  /// Lists this replica's parts of divided parameters, in the order in which they lie in memory.
  [[gnu::cold]] void list_shards() {
    fill(shard_ranges_, [&](sink<shard_range>& to) {
      long before = 0;
      for_each_chunk([&](int c) {
        cuts_of(c).for_each_divided_shard(me_, [&](int, long begin, long end) {
          if (begin < end) to.push_back({c, begin, end, before});
          before += end - begin;
        });
      });
    });
  }
  /// Lists the ranges that this replica updates, chunk by chunk, with the addresses of values,
  /// gradients and state.
  [[gnu::cold]] void list_updates() {
    first_update_ = heap_array<long>(d_->chunks + 1);
    fill(updates_, [&](sink<owned_update<T>>& to) {
      long state = 0;
      for (int c = 0; c < d_->chunks; ++c) {
        chunk_description const& chunk = d_->chunk[c];
        auto const add = [&](update_range const& u) {
          long const begin = u.begin * width;
          bool const divided = is_divided(chunk, begin);
          to.push_back({u,
                        divided && d_->zero > 2 ? own_values(c, begin) : at(chunk.values + begin),
                        divided && d_->divides_gradients ? own_gradients(c, begin)
                                                         : at(chunk.gradients + begin),
                        at(end_.state) + u.state});
        };
        if (chunk.rank == rank_) state = for_each_owned(cuts_of(c), me_, state, add);
        first_update_[c + 1] = to.count;
      }
    });
  }
  /// Lists the addresses of the blocks of gradients; null for divided gradients of other replicas.
  [[gnu::cold]] void list_gradients(view<gradient_block> blocks) {
    gradients_ = heap_array<T*>(blocks.count);
    for (int i = 0; i < blocks.count; ++i) {
      gradient_block const& b = blocks[i];
      long const begin = cuts_of(int(b.chunk - d_->chunk)).place_of(*b.of) + b.begin * width;
      int const c = int(b.chunk - d_->chunk);
      gradients_[i] = d_->divides_gradients && is_divided(*b.chunk, begin)
                          ? own_gradients(c, begin)
                          : at(b.chunk->gradients + begin);
    }
  }
  /// Lists the parameters that each replica updates, in ranges of at most most_bucket_bytes bytes,
  /// except for divided parameters, which replicas exchange when launches read them.
  [[gnu::cold]] void list_values() {
    first_range_ = heap_array<long>(replicas_ + 1);
    fill(ranges_, [&](sink<replica_range>& to) {
      for (int replica = 0; replica < replicas_; ++replica) {
        for_each_chunk([&](int c) {
          for_each_owned(cuts_of(c), replica, 0, [&](update_range const& u) {
            long const end = u.end * width;
            if (d_->zero > 2 && is_divided(d_->chunk[c], u.begin * width)) return;
            for (long from = u.begin * width; from < end; from += most_bucket_bytes) {
              long const left = end - from;
              to.push_back({memory_ + d_->chunk[c].values + from,
                            left < most_bucket_bytes ? left : most_bucket_bytes});
            }
          });
        });
        first_range_[replica + 1] = to.count;
      }
    });
  }
  /// Lists the owner of each block of gradients, and the block's place among the squared norms that
  /// replicas exchange.
  [[gnu::cold]] void list_squares(view<gradient_block> blocks) {
    owner_ = heap_array<int>(blocks.count);
    place_ = heap_array<long>(blocks.count);
    first_square_ = heap_array<long>(replicas_ + 1);
    for (int i = 0; i < blocks.count; ++i) {
      shard_cuts const cuts = cuts_of(int(blocks[i].chunk - d_->chunk));
      long const begin = cuts.place_of(*blocks[i].of) + blocks[i].begin * width;
      owner_[i] = is_for_all(*d_, cuts, cuts.bucket_of(begin)) ? -1 : cuts.owner_of(begin);
    }
    long next = 0;
    for (int replica = 0; replica < replicas_; ++replica) {
      for (int i = 0; i < blocks.count; ++i)
        if (owner_[i] == replica) place_[i] = next++;
      first_square_[replica + 1] = next;
    }
  }

  pipeline_description const* d_ = nullptr;
  char* memory_ = nullptr;
  arena_end end_;
  int rank_ = 0, me_ = 0, replicas_ = 1;
  heap_array<shard_range> shard_ranges_;
  heap_array<replica_range> ranges_;
  heap_array<long> first_range_;  // by replica, and the end
  /// By gradient block. owner_: the replica that measures the block; -1: all replicas do. place_:
  /// the block's number among divided blocks, in the order of owners.
  heap_array<int> owner_;
  heap_array<long> place_;
  heap_array<long> first_square_;  // by replica, and the end
};

}  // namespace pp::detail
