// SPDX-License-Identifier: BSL-1.0
//
// What a rank updates. Without ZeRO that is all of its parameters; with it, the part that this
// replica owns, whose state it has, and the runs of memory through which replicas give each other
// what they have computed.
#pragma once

#include <pipe/base/config.hpp>
#include <pipe/base/heap_array.hpp>
#include <pipe/base/view.hpp>
#include <pipe/runtime/description.hpp>
#include <pipe/runtime/host/replica_sum.hpp>
#include <pipe/runtime/shards.hpp>
#include <pipe/transport/transport.hpp>

namespace pp::detail {

/// The shards of one rank: this replica's, and where those of the others are. T: element type.
template <class T>
class rank_shards {
 public:
  /// blocks: of the rank's gradients, in its order
  [[gnu::cold]] void assemble(pipeline_description const& d, int rank, char* memory,
                              process_place const& place, arena_end const& end,
                              gradient_block const* blocks, int count) {
    d_ = &d, memory_ = memory;
    if (d.zero == 0) return;
    state_ = memory + end.state;
    list_updates(rank, place);
    if (place.replicas == 1) return;
    list_values(rank, place);
    list_squares(place, {blocks, count}, reinterpret_cast<double*>(memory + end.room));
  }

  /// The ranges of a chunk that are updated here.
  view<update_range> updates_of(chunk_description const& c) const {
    if (d_->zero == 0) return {c.updates, c.update_count};
    long const* const first = first_update_.begin() + (&c - d_->chunk);
    return {updates_.begin() + first[0], int(first[1] - first[0])};
  }
  T* state_of(chunk_description const& c, update_range const& u) const {
    return reinterpret_cast<T*>(d_->zero == 0 ? memory_ + c.state : state_) + u.state;
  }
  /// Whether this replica measures a block: with replicas that divide the work, those of its slices
  /// and those that all have.
  bool measures(long block) const {
    return owner_.size() == 0 || owner_[block] < 0 || is_own(block);
  }

  /// Puts the squared norms of the own blocks where gather() sends them from, or takes those of the
  /// others from where it has received them.
  void pack(gradient_block const* blocks) {
    for (long i = 0; i < owner_.size(); ++i)
      if (is_own(i)) {
        double* const to = squares_ + 2 * place_[i];
        to[0] = blocks[i].square, to[1] = blocks[i].clamped_square;
      }
  }
  void unpack(gradient_block* blocks) const {
    for (long i = 0; i < owner_.size(); ++i)
      if (owner_[i] >= 0 && !is_own(i)) {
        double const* const from = squares_ + 2 * place_[i];
        blocks[i].square = from[0], blocks[i].clamped_square = from[1];
      }
  }
  /// The runs of replica_sum::gather: squared norms, and updated parameters.
  replica_run squares_of(int replica, long number) const {
    if (number > 0 || owner_.size() == 0) return {};
    long const begin = first_square_[replica], end = first_square_[replica + 1];
    return {reinterpret_cast<char*>(squares_ + 2 * begin),
            (end - begin) * 2 * long(sizeof(double))};
  }
  replica_run values_of(int replica, long number) const {
    if (first_run_.size() == 0) return {};
    long const i = first_run_[replica] + number;
    return i < first_run_[replica + 1] ? runs_[i] : replica_run{};
  }

 private:
  bool is_own(long block) const { return owner_[block] == me_; }

  [[gnu::cold]] void list_updates(int rank, process_place const& place) {
    long state = 0, count = 0;
    // The first turn counts.
    for (bool lists : {false, true}) {
      if (lists)
        updates_ = heap_array<update_range>(count),
        first_update_ = heap_array<long>(d_->chunks + 1);
      state = count = 0;
      for (int c = 0; c < d_->chunks; ++c) {
        if (d_->chunk[c].rank == rank)
          state = for_each_owned({d_->chunk[c], sizeof(T), place.replicas}, place.replica, state,
                                 [&](update_range const& u) {
                                   if (lists) updates_[count] = u;
                                   ++count;
                                 });
        if (lists) first_update_[c + 1] = count;
      }
    }
  }
  [[gnu::cold]] void list_values(int rank, process_place const& place) {
    long count = 0;
    for (bool lists : {false, true}) {
      if (lists)
        runs_ = heap_array<replica_run>(count), first_run_ = heap_array<long>(place.replicas + 1);
      count = 0;
      for (int replica = 0; replica < place.replicas; ++replica) {
        for (int c = 0; c < d_->chunks; ++c) {
          if (d_->chunk[c].rank != rank) continue;
          char* const values = memory_ + d_->chunk[c].values;
          for_each_owned(
              {d_->chunk[c], sizeof(T), place.replicas}, replica, 0, [&](update_range const& u) {
                long const end = u.end * long(sizeof(T));
                for (long at = u.begin * long(sizeof(T)); at < end;
                     at += most_leaf_bucket, ++count) {
                  long const left = end - at;
                  if (lists)
                    runs_[count] = {values + at, left < most_leaf_bucket ? left : most_leaf_bucket};
                }
              });
        }
        if (lists) first_run_[replica + 1] = count;
      }
    }
  }
  [[gnu::cold]] void list_squares(process_place const& place, view<gradient_block> blocks,
                                  double* room) {
    me_ = place.replica;
    squares_ = room;
    owner_ = heap_array<int>(blocks.count);
    place_ = heap_array<long>(blocks.count);
    first_square_ = heap_array<long>(place.replicas + 1);
    for (int i = 0; i < blocks.count; ++i) {
      gradient_block const& b = blocks.items[i];
      shard_cuts const cuts{*b.chunk, sizeof(T), place.replicas};
      long const at = cuts.place_of(*b.of) + b.begin * long(sizeof(T));
      owner_[i] = is_for_all(*d_, cuts, cuts.bucket_of(at)) ? -1 : cuts.owner_of(at);
    }
    long next = 0;
    for (int replica = 0; replica < place.replicas; ++replica) {
      first_square_[replica] = next;
      for (long i = 0; i < owner_.size(); ++i)
        if (owner_[i] == replica) place_[i] = next++;
    }
    first_square_[place.replicas] = next;
  }

  pipeline_description const* d_ = nullptr;
  char *memory_ = nullptr, *state_ = nullptr;
  int me_ = 0;
  heap_array<update_range> updates_;
  heap_array<long> first_update_;  // by chunk, and the end
  heap_array<replica_run> runs_;
  heap_array<long> first_run_;  // by replica, and the end
  /// By gradient block: the replica that measures it, or -1: all; and its number among those.
  heap_array<int> owner_;
  heap_array<long> place_;
  double* squares_ = nullptr;  // [blocks, 2], by owner
  heap_array<long> first_square_;
};

}  // namespace pp::detail
