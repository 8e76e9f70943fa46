// SPDX-License-Identifier: BSL-1.0
//
// The updates of one process of a pipeline on GPUs: all ranges of its chunks. Where replicas divide
// the update (see ZeRO), these are parts of the ranges, and the process gives the results to the
// other replicas.
#pragma once

#include <cstddef>
#include <vector>

#include <pipe/runtime/cuda/executor.cuh>
#include <pipe/runtime/cuda/process_link.cuh>
#include <pipe/runtime/description.hpp>
#include <pipe/runtime/device_blocks.hpp>
#include <pipe/runtime/shards.hpp>
#include <pipe/runtime/sum_tree.hpp>

namespace pp::detail {

/// The updates of this process in compiled pipeline P, without ZeRO: all ranges of its chunks.
///
/// needs: the executor outlives this object
template <class P, bool = (P::zero::level > 0)>
class cuda_rank_updates {
 public:
  explicit cuda_rank_updates(cuda_executor const& executor) : d_(executor.description()) {}

  /// use(range, number) for the ranges, or parts of ranges, that this process updates of one of its
  /// chunks, in memory order. number: the number of the whole range in the chunk. The states of
  /// ranges count from state_of(chunk).
  template <class Use>
  void for_each(int chunk, Use const& use) const {
    chunk_description const& c = d_.chunk[chunk];
    for (int i = 0; i < c.updates.count; ++i) use(c.updates[i], i);
  }
  /// Start of the state of a chunk of this process: in the arena of its rank or, with OffloadState,
  /// in the rank's memory on the host.
  ///
  /// units: bytes
  long state_of(chunk_description const& c) const {
    return P::offload::is_on ? c.host_state : c.state;
  }
  /// Bytes of a rank's state on the host.
  long host_bytes(int rank) const { return d_.rank[rank].host_bytes; }

 private:
  pipeline_description const& d_;
};

/// The updates of this process with ZeRO: the parts of ranges that this replica owns, as on the
/// host (see for_each_owned). Their state is at the end of the rank's arena or, with OffloadState,
/// in the rank's memory on the host.
template <class P>
class cuda_rank_updates<P, true> {
 public:
  [[gnu::cold]] explicit cuda_rank_updates(cuda_executor& executor)
      : executor_(executor), d_(executor.description()), chunks_(std::size_t(d_.chunks)),
        host_bytes_(std::size_t(d_.ranks)), ranges_(std::size_t(local().replicas)) {
    for (int r = local().first_rank(); r < local().end_rank(); ++r) {
      arena_end const end = end_of_arena(d_, width, r, local().replicas, local().replica);
      host_bytes_[std::size_t(r)] = P::offload::is_on ? end.state_bytes : 0;
      long state = P::offload::is_on ? 0 : end.state;
      for (int c = 0; c < d_.chunks; ++c)
        if (d_.chunk[c].rank == r) state = list_chunk(c, state);
    }
    for (std::vector<range> const& of_replica : ranges_)
      if (of_replica.size() > rounds_) rounds_ = of_replica.size();
  }

  template <class Use>
  void for_each(int chunk, Use const& use) const {
    for (part const& p : chunks_[std::size_t(chunk)].parts) use(p.of, p.number);
  }
  long state_of(chunk_description const& c) const { return own(c).state; }
  /// Bytes of the state that this replica has of a chunk.
  long state_bytes(chunk_description const& c) const { return own(c).state_bytes; }
  long host_bytes(int rank) const { return host_bytes_[std::size_t(rank)]; }

  /// Gives the other replicas the parameters that this replica has updated, and takes theirs, in
  /// groups of at most one part of each replica.
  ///
  /// law:   work is enqueued only, on the stream of all exchanges, behind all work of the ranks so
  ///        far and before all later work
  /// needs: there are other replicas, which call share() at the same place in the order of their
  ///        exchanges
  void share() {
    cuda::rank_copies& copies = executor_.copies();
    cudaStream_t on{};
    for (int r = local().first_rank(); r < local().end_rank(); ++r) on = copies.exchanges_behind(r);
    int const me = local().replica;
    for (std::size_t k = 0; k < rounds_; ++k) {
      messages_.clear();
      for_others(me, local().replicas, [&](int r) {
        add_message(r, true, ranges_[std::size_t(me)], k);
        add_message(r, false, ranges_[std::size_t(r)], k);
      });
      copies.processes()->exchange(messages_, on);
    }
    for (int r = local().first_rank(); r < local().end_rank(); ++r) copies.await(r);
  }

 private:
  static constexpr long width = sizeof(float);
  struct part {
    update_range of;
    int number = 0;
  };
  struct own_chunk {
    std::vector<part> parts;
    long state = 0, state_bytes = 0;
  };
  /// A range of parameters that one replica updates.
  struct range {
    char* values = nullptr;
    long bytes = 0;
  };

  local_devices const& local() const { return executor_.streams().local(); }
  own_chunk const& own(chunk_description const& c) const {
    return chunks_[std::size_t(&c - d_.chunk)];
  }
  /// Lists the ranges that each replica updates of a chunk. state: the offset of this replica's
  /// state of the chunk; returns the end of that state
  long list_chunk(int number, long state) {
    chunk_description const& c = d_.chunk[number];
    shard_cuts const cuts{c, width, local().replicas};
    own_chunk& mine = chunks_[std::size_t(number)];
    for (int r = 0; r < local().replicas; ++r) {
      int i = 0;  // parts are in the order of the ranges
      long const elements = for_each_owned(cuts, r, 0, [&](update_range const& u) {
        while (c.updates[i].end <= u.begin) ++i;
        if (r == local().replica) mine.parts.push_back({u, i});
        ranges_[std::size_t(r)].push_back(
            {executor_.at<char>(c.rank, c.values + u.begin * width), (u.end - u.begin) * width});
      });
      if (r == local().replica) mine.state_bytes = elements * width;
    }
    mine.state = state;
    return state + mine.state_bytes;
  }
  /// Adds a message to or from another replica with range number k of a replica, if the replica has
  /// such a range.
  void add_message(int other, bool is_sent, std::vector<range> const& of, std::size_t k) {
    if (k < of.size())
      messages_.push_back({local().peer(other), is_sent, of[k].values, of[k].bytes});
  }

  cuda_executor& executor_;
  pipeline_description const& d_;
  std::vector<own_chunk> chunks_;           // empty for chunks of other processes
  std::vector<long> host_bytes_;            // by rank
  std::vector<std::vector<range>> ranges_;  // by replica, of the ranks of this process
  std::size_t rounds_ = 0;                  // the most ranges of a replica
  std::vector<cuda::message> messages_;
};

}  // namespace pp::detail
