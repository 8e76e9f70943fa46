// SPDX-License-Identifier: BSL-1.0
//
// Sums over the replicas of a pipeline: of the gradients of a rank, bucket by bucket while other
// actions run, and of a single number. Every replica owns a slice of a bucket: it gets that slice
// of all others, adds them in the tree's order, and sends the sum back. That is a reduce-scatter
// and an all-gather of 2 (n - 1) / n times the bucket each way, as a ring's; the order of the sum
// is the tree's for any number of replicas.
#pragma once

#include <cstddef>

#include <pipe/base/bytes.hpp>
#include <pipe/base/config.hpp>
#include <pipe/base/error.hpp>
#include <pipe/base/heap_array.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/runtime/host/backend_calls.hpp>
#include <pipe/runtime/host/team.hpp>
#include <pipe/runtime/leaves.hpp>
#include <pipe/transport/transport.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp::detail {

/// A rank's sums with the same rank of all other replicas. T: element type of gradients.
///
/// needs: assemble() before anything else; all replicas give as large buckets in the same order
/// law:   nothing is allocated after assemble()
template <class T, replica_transport Transport>
class replica_sum {
 public:
  /// room: room_for_replicas() bytes. buckets: the most that are given in a step
  [[gnu::cold]] void assemble(Transport& transport, process_place const& place, int rank,
                              char* room, long room_bytes, int buckets) {
    transport_ = &transport;
    rank_ = rank;
    me_ = place.replica;
    replicas_ = place.replicas;
    room_ = reinterpret_cast<T*>(room);
    half_ = room_bytes / 2 / long(sizeof(T));
    if (replicas_ > half_)
      throw_error<error>(
          {replicas_, " replicas are more than the ", half_, " that are planned for"});
    buckets_ = heap_array<bucket>(buckets);
  }

  /// Begins a step.
  void begin() { given_ = begun_ = added_ = done_ = 0; }
  /// Gives the next bucket, of at most half the room, which is complete here.
  void give(T* data, long elements) {
    // Slices begin at lines, unless the room is too small for that.
    long slice = (elements + replicas_ - 1) / replicas_;
    long const lines = (slice + line - 1) / line * line;
    if (lines * (replicas_ - 1) <= half_) slice = lines;
    buckets_[given_++] = {data, elements, slice};
  }
  /// Goes on as far as possible without waiting. Returns whether all that was given is done.
  bool advance(team& all, void (*add)(std::ptrdiff_t, T*, T const*)) {
    for (bool moves = true; moves;) {
      moves = false;
      if (done_ < added_ && transport_->has_met(rank_, lane_of(done_, sums))) ++done_, moves = true;
      if (added_ < begun_ && transport_->has_met(rank_, lane_of(added_, leaves))) {
        bucket const& b = buckets_[added_];
        add_slices(b, half_of(added_), all, add);
        exchange_sums(b, lane_of(added_, sums));
        ++added_, moves = true;
      }
      if (begun_ < given_ && begun_ - done_ < 2) {
        exchange_leaves(buckets_[begun_], half_of(begun_), lane_of(begun_, leaves));
        ++begun_, moves = true;
      }
    }
    return done_ == given_;
  }
  /// Waits until all that was given is done.
  waited finish(team& all, void (*add)(std::ptrdiff_t, T*, T const*), failure_flag const& failed) {
    return transport_->until([&] { return advance(all, add); }, failed);
  }
  /// Adds a number up over the replicas.
  ///
  /// needs: what was given is done
  waited add_up(double& number, failure_flag const& failed) {
    double* const numbers = reinterpret_cast<double*>(room_);
    numbers[me_] = number;
    for_others([&](int replica) {
      constexpr long bytes = sizeof(double);
      transport_->receive_from(rank_, replica, 0, reinterpret_cast<char*>(numbers + replica),
                               bytes);
      transport_->send_to(rank_, replica, 0, reinterpret_cast<char*>(numbers + me_), bytes);
    });
    waited const w = transport_->until([&] { return transport_->has_met(rank_, 0); }, failed);
    join_leaves(replicas_, [&](int to, int from) { numbers[to] += numbers[from]; });
    number = numbers[0];
    return w;
  }

 private:
  /// Elements of a cache line, at which slices begin.
  static constexpr long line = host::columns_step<T>;
  /// The two exchanges of a bucket: every replica's part of a slice, and the slice's sum.
  enum phase : int { leaves, sums };
  static_assert(Transport::lanes >= 4, "two buckets at a time, each with two phases");

  /// Gradients that are exchanged at once; slice s has elements [s * slice, (s + 1) * slice).
  struct bucket {
    T* data = nullptr;
    long elements = 0, slice = 0;
    T* begin_of(int s) const { return data + (s * slice < elements ? s * slice : elements); }
    long size_of(int s) const { return begin_of(s + 1) - begin_of(s); }
    long bytes_of(int s) const { return size_of(s) * long(sizeof(T)); }
  };

  T* half_of(long number) const { return room_ + number % 2 * half_; }
  static int lane_of(long number, phase p) { return int(number % 2) * 2 + p; }
  /// use(replica) for all but this one, the next one first, so that not all send to the same.
  template <class Use>
  void for_others(Use const& use) const {
    for (int i = 1; i < replicas_; ++i) use((me_ + i) % replicas_);
  }

  /// Begins to receive the own slice of all others, and to send theirs.
  ///
  /// shape: room: [replicas - 1, slice]
  void exchange_leaves(bucket const& b, T* room, int lane) {
    for_others([&](int replica) {
      if (b.size_of(me_) > 0)
        transport_->receive_from(rank_, replica, lane,
                                 reinterpret_cast<char*>(room + room_of(replica) * b.slice),
                                 b.bytes_of(me_));
      if (b.size_of(replica) > 0)
        transport_->send_to(rank_, replica, lane, reinterpret_cast<char*>(b.begin_of(replica)),
                            b.bytes_of(replica));
    });
  }
  /// Begins to send the own slice's sum, and to receive those of the others into the bucket.
  ///
  /// needs: the bucket's first exchange is done, so that its slices are not read any more
  void exchange_sums(bucket const& b, int lane) {
    for_others([&](int replica) {
      if (b.size_of(replica) > 0)
        transport_->receive_from(rank_, replica, lane, reinterpret_cast<char*>(b.begin_of(replica)),
                                 b.bytes_of(replica));
      if (b.size_of(me_) > 0)
        transport_->send_to(rank_, replica, lane, reinterpret_cast<char*>(b.begin_of(me_)),
                            b.bytes_of(me_));
    });
  }
  /// Place of a replica's part in the room, which has none for this replica's own.
  int room_of(int replica) const { return replica - (replica > me_); }

  /// Adds the parts of the own slice, in blocks that stay in the cache.
  void add_slices(bucket const& b, T* room, team& all, void (*add)(std::ptrdiff_t, T*, T const*)) {
    constexpr long block = 4096;
    long const size = b.size_of(me_);
    T* const own = b.begin_of(me_);
    all.run([&](int part) {
      host::share const mine = host::share_of(size, line, part, all.size());
      for (long from = mine.begin; from < mine.end; from += block) {
        long const n = mine.end - from < block ? mine.end - from : block;
        auto const at = [&](int replica) {
          return (replica == me_ ? own : room + room_of(replica) * b.slice) + from;
        };
        join_leaves_into(me_, replicas_, [&](int to, int added) { add(n, at(to), at(added)); });
      }
    });
  }

  Transport* transport_ = nullptr;
  int rank_ = 0, me_ = 0, replicas_ = 1;
  T* room_ = nullptr;
  long half_ = 0;  // elements of half the room
  heap_array<bucket> buckets_;
  long given_ = 0, begun_ = 0, added_ = 0, done_ = 0;  // buckets of this step
};

}  // namespace pp::detail
PIPE_OPTIMIZED_END
