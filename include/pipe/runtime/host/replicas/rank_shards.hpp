// SPDX-License-Identifier: BSL-1.0
//
// The shards of a rank: what it updates. Without ZeRO that is all of its parameters; with it, the
// part that this replica owns, whose state it has, and the ranges of memory through which replicas
// give each other what they have computed.
#pragma once

#include <pipe/base/config.hpp>
#include <pipe/base/heap_array.hpp>
#include <pipe/base/view.hpp>
#include <pipe/runtime/description.hpp>
#include <pipe/runtime/host/core/rank_updates.hpp>
#include <pipe/runtime/shards.hpp>
#include <pipe/transport/transport.hpp>

namespace pp::detail {

/// The shards of one rank: this replica's, and where those of the others are.
template <class T>
class rank_shards : public rank_updates<T> {
  using all = rank_updates<T>;
  using all::updates_, all::first_update_, all::gradients_;

 public:
  /// blocks: of the rank's gradients, in its order
  [[gnu::cold]] void assemble(pipeline_description const& d, int rank, char* memory,
                              process_place const& place, arena_end const& end,
                              gradient_block const* blocks, int count) {
    d_ = &d, memory_ = memory, end_ = end;
    rank_ = rank, me_ = place.replica, replicas_ = place.replicas;
    if (d.zero == 0) return all::assemble(d, rank, memory, blocks, count);
    list_slices();
    list_updates();
    list_gradients({blocks, count});
    if (replicas_ == 1) return;
    list_values();
    list_squares({blocks, count});
  }

  /// Whether this replica measures a block: of those that replicas divide, the ones of its slices.
  bool measures(long block) const {
    return owner_.size() == 0 || owner_[block] < 0 || is_own(block);
  }
  /// The own part of a divided parameter's gradients, of one bucket; or of its values (ZeRO<3>).
  ///
  /// needs: a position in an own slice
  T* own_gradients(int chunk, long at) const { return shard(end_.gradients, chunk, at); }
  T* own_values(int chunk, long at) const { return shard(end_.values, chunk, at); }

  /// Puts the squared norms of the own blocks where gather() sends them from, or takes those of the
  /// others from where it has received them.
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
  /// The ranges of replica_sum::gather: squared norms, and updated parameters.
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
  /// A part of a divided parameter that is here: positions, and bytes of own parts before it.
  struct slice {
    int chunk = 0;
    long begin = 0, end = 0, before = 0;
  };

  bool is_own(long block) const { return owner_[block] == me_; }
  /// By owner.
  ///
  /// shape: [blocks, 2]
  double* squares() const { return reinterpret_cast<double*>(memory_ + end_.room); }
  /// The cuts of a chunk for the number of replicas that there are.
  shard_cuts cuts_of(int chunk) const { return {d_->chunk[chunk], width, replicas_}; }
  /// use(chunk) for those of the rank.
  template <class Use>
  void for_each_chunk(Use const& use) const {
    for (int c = 0; c < d_->chunks; ++c)
      if (d_->chunk[c].rank == rank_) use(c);
  }
  /// An address in a region of own parts.
  ///
  /// post: null for a position of another replica
  T* shard(long region, int chunk, long at) const {
    for (slice const& s : slices_)
      if (s.chunk == chunk && at >= s.begin && at < s.end)
        return reinterpret_cast<T*>(memory_ + region + s.before + at - s.begin);
    return nullptr;
  }
  bool is_divided(int chunk, long at) const { return at < d_->chunk[chunk].divided_bytes; }
  T* at(long offset) const { return reinterpret_cast<T*>(memory_ + offset); }

  /// The own parts of divided parameters, in the order in which they lie one after the other.
  [[gnu::cold]] void list_slices() {
    fill(slices_, [&](sink<slice>& to) {
      long before = 0;
      for_each_chunk([&](int c) {
        cuts_of(c).for_each_divided_slice(me_, [&](int, long begin, long end) {
          if (begin < end) to.push_back({c, begin, end, before});
          before += end - begin;
        });
      });
    });
  }
  /// The ranges that are updated here, chunk by chunk, with the addresses of their numbers.
  [[gnu::cold]] void list_updates() {
    first_update_ = heap_array<long>(d_->chunks + 1);
    fill(updates_, [&](sink<owned_update<T>>& to) {
      long state = 0;
      for (int c = 0; c < d_->chunks; ++c) {
        chunk_description const& chunk = d_->chunk[c];
        auto const add = [&](update_range const& u) {
          long const begin = u.begin * width;
          bool const divided = is_divided(c, begin);
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
  /// The addresses of the blocks of gradients that are measured here; null for those of others.
  [[gnu::cold]] void list_gradients(view<gradient_block> blocks) {
    gradients_ = heap_array<T*>(blocks.count);
    for (int i = 0; i < blocks.count; ++i) {
      gradient_block const& b = blocks[i];
      long const begin = cuts_of(int(b.chunk - d_->chunk)).place_of(*b.of) + b.begin * width;
      int const c = int(b.chunk - d_->chunk);
      gradients_[i] = d_->divides_gradients && is_divided(c, begin)
                          ? own_gradients(c, begin)
                          : at(b.chunk->gradients + begin);
    }
  }
  /// The updated parameters of each replica, in ranges of at most most_leaf_bucket bytes. Divided
  /// ones that come when they are read are not among them.
  [[gnu::cold]] void list_values() {
    first_range_ = heap_array<long>(replicas_ + 1);
    fill(ranges_, [&](sink<replica_range>& to) {
      for (int replica = 0; replica < replicas_; ++replica) {
        for_each_chunk([&](int c) {
          for_each_owned(cuts_of(c), replica, 0, [&](update_range const& u) {
            long const end = u.end * width;
            if (d_->zero > 2 && is_divided(c, u.begin * width)) return;
            for (long from = u.begin * width; from < end; from += most_leaf_bucket) {
              long const left = end - from;
              to.push_back({memory_ + d_->chunk[c].values + from,
                            left < most_leaf_bucket ? left : most_leaf_bucket});
            }
          });
        });
        first_range_[replica + 1] = to.count;
      }
    });
  }
  /// The owner of each block of gradients, and its place among the squares that replicas exchange.
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
  heap_array<slice> slices_;
  heap_array<replica_range> ranges_;
  heap_array<long> first_range_;  // by replica, and the end
  /// By gradient block: the replica that measures it, or -1: all; and its number among those of its
  /// owner and of replicas before it.
  heap_array<int> owner_;
  heap_array<long> place_;
  heap_array<long> first_square_;  // by replica, and the end
};

}  // namespace pp::detail
