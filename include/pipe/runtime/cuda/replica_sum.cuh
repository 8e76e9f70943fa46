// SPDX-License-Identifier: BSL-1.0
//
// Sums over the replicas of a pipeline on GPUs, bit for bit the same for any sizes and any network.
// Every process owns a shard of a bucket: it receives this shard from the processes with the same
// ranks in all other replicas, adds the shards in the order of the tree, and sends the sum back, as
// replicas on the host do: see runtime/host/replicas/replica_sum.hpp.
#pragma once

#include <cstddef>
#include <vector>

#include <cuda_runtime.h>

#include <pipe/base/error.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/runtime/cuda/process_link.cuh>
#include <pipe/runtime/device_blocks.hpp>
#include <pipe/runtime/sum_tree.hpp>

namespace pp::cuda {

/// The sums of this process with the processes that have the same ranks in the other replicas.
///
/// law:   in every replica, the sum is that of join_tree over the replicas; each of n replicas
///        sends and receives 2 (n - 1) / n times the data
/// law:   work is enqueued only
/// needs: the replicas make the same calls, at the same places in the order of their exchanges
class replica_sum {
 public:
  /// Enqueues to[i] += from[i] for i < n; both begin at multiples of `line`.
  template <class T>
  using addition = void (*)(long n, T* to, T const* from, cudaStream_t on);

  /// link: to the processes of other replicas; null if there are none
  explicit replica_sum(process_link* link, detail::local_devices const& local)
      : link_(link), local_(local) {}

  /// Adds data up over the replicas. room: memory on the device of `data` for the shards that
  /// others send; a larger room means fewer messages.
  ///
  /// shape:  data[elements], in place; room[room_bytes], at least `line` for each other replica
  /// throws: error if the room is too small; as process_link::exchange
  template <class T>
  void add_up(T* data, long elements, char* room, long room_bytes, cudaStream_t on,
              addition<T> add) {
    int const n = local_.replicas, me = local_.replica;
    if (n == 1) return;
    constexpr long unit = line / long(sizeof(T));
    long const shard = room_bytes / (n - 1) / line * unit;
    if (shard == 0)
      detail::throw_error<error>(
          {n, " replicas are more than the ", room_bytes / line + 1, " that are planned for"});
    // The sums of a round travel together with the shards of the next round.
    round<T> before{};
    for (long from = 0; from < elements || before.elements > 0; from += n * shard) {
      long const begin = from < elements ? from : elements, left = elements - begin;
      round<T> const now{data + begin, left < n * shard ? left : n * shard, unit, n};
      messages_.clear();
      detail::for_others(me, n, [&](int r) {
        exchange(r, now.begin(r), now.size(r), room_of(room, now, r), now.size(me));
      });
      detail::for_others(me, n, [&](int r) {
        exchange(r, before.begin(me), before.size(me), before.begin(r), before.size(r));
      });
      link_->exchange(messages_, on);
      auto const part = [&](int r) { return r == me ? now.begin(me) : room_of(room, now, r); };
      if (now.size(me) > 0)
        detail::join_tree_into(
            me, n, [&](int to, int added) { add(now.size(me), part(to), part(added), on); });
      before = now;
    }
  }

  /// Bytes at whose multiples shards begin.
  static constexpr long line = 256;

 private:
  /// The part of a bucket that is exchanged at once, with a shard for each replica. All shards have
  /// stride() elements, except that the last ones may have fewer or none.
  template <class T>
  struct round {
    T* data = nullptr;
    long elements = 0, unit = 1;
    int replicas = 1;
    long stride() const {
      long const units = (elements + unit - 1) / unit;
      return (units + replicas - 1) / replicas * unit;
    }
    long at(int r) const { return r * stride() < elements ? r * stride() : elements; }
    T* begin(int r) const { return data + at(r); }
    long size(int r) const { return at(r + 1) - at(r); }
  };
  /// The part of the room that receives this process's shard from another replica.
  template <class T>
  T* room_of(char* room, round<T> const& of, int replica) const {
    return reinterpret_cast<T*>(room) + (replica - (replica > local_.replica)) * of.stride();
  }
  template <class T>
  void exchange(int with, T* sent, long sent_count, T* received, long received_count) {
    int const process = local_.peer(with);
    if (sent_count > 0) messages_.push_back({process, true, sent, sent_count * long(sizeof(T))});
    if (received_count > 0)
      messages_.push_back({process, false, received, received_count * long(sizeof(T))});
  }

  process_link* link_;
  detail::local_devices local_;
  std::vector<message> messages_;
};

}  // namespace pp::cuda
