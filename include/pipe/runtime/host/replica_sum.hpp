// SPDX-License-Identifier: BSL-1.0
//
// Sums over the replicas of a pipeline: of the gradients of a rank, bucket by bucket while other
// actions run, and of a single number. Every replica owns a slice of a bucket: it gets that slice
// of all others, adds them in the tree's order, and sends the sum back, unless with ZeRO it alone
// needs it. That is a reduce-scatter and an all-gather of 2 (n - 1) / n times the bucket each way,
// as a ring's; the order of the sum is the tree's for any number of replicas.
#pragma once

#include <cstddef>
#include <cstring>

#include <pipe/base/bytes.hpp>
#include <pipe/base/config.hpp>
#include <pipe/base/error.hpp>
#include <pipe/base/heap_array.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/runtime/host/backend_calls.hpp>
#include <pipe/runtime/host/rank_updates.hpp>
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
  /// room: bytes for two buckets' slices of all others. buckets: the most that are given in a step
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
    slices_ = heap_array<host::share>(long(buckets) * replicas_);
  }
  /// Describes a bucket, of which all replicas need the sum. It is cut evenly.
  [[gnu::cold]] void describe(int number, long elements) {
    // Slices begin at lines, unless the room is too small for that.
    long size = (elements + replicas_ - 1) / replicas_;
    long const lines = (size + line - 1) / line * line;
    if (lines * (replicas_ - 1) <= half_) size = lines;
    describe(number, true, nullptr, [&](int replica) {
      auto const at = [&](long s) { return s * size < elements ? s * size : elements; };
      return host::share{at(replica), at(replica + 1)};
    });
  }
  /// Describes a bucket by its slice_of(replica). is_for_all: whether all replicas need the sum.
  /// keep: where this replica's slice is copied to, unless it is null.
  template <class SliceOf>
  [[gnu::cold]] void describe(int number, bool is_for_all, T* keep, SliceOf const& slice_of) {
    bucket& b = buckets_[number];
    b.slices = slices_.begin() + long(number) * replicas_;
    b.is_for_all = is_for_all;
    b.keep = keep;
    for (int r = 0; r < replicas_; ++r) {
      b.slices[r] = slice_of(r);
      if (long const n = b.slices[r].size(); n > b.stride) b.stride = n;
    }
  }

  /// Begins a step.
  void begin() { given_ = begun_ = added_ = done_ = 0; }
  /// Gives the next bucket, which is complete here.
  void give(T* data) { buckets_[given_++].data = data; }
  /// Goes on as far as possible without waiting. Returns whether all that was given is done.
  bool advance(team& all, void (*add)(std::ptrdiff_t, T*, T const*)) {
    for (bool moves = true; moves;) {
      moves = false;
      if (done_ < added_ &&
          (!buckets_[done_].is_for_all || transport_->has_met(rank_, lane_of(done_, sums))))
        ++done_, moves = true;
      if (added_ < begun_ && transport_->has_met(rank_, lane_of(added_, leaves))) {
        bucket const& b = buckets_[added_];
        add_slices(b, half_of(added_), all, add);
        if (b.is_for_all) exchange_sums(b, lane_of(added_, sums));
        if (b.keep != nullptr) std::memcpy(b.keep, b.begin_of(me_), std::size_t(b.bytes_of(me_)));
        ++added_, moves = true;
      }
      if (begun_ < given_ && begun_ - done_ < 2) {
        exchange_leaves(buckets_[begun_], half_of(begun_), lane_of(begun_, leaves));
        ++begun_, moves = true;
      }
    }
    return done_ == given_;
  }
  /// Waits until a number of buckets are done, while also() goes on with other exchanges.
  ///
  /// needs: as many are given
  template <class Also>
  waited until_done(long number, team& all, void (*add)(std::ptrdiff_t, T*, T const*),
                    failure_flag const& failed, Also const& also) {
    return transport_->until([&] { return also(), advance(all, add) || done_ >= number; }, failed);
  }
  /// Adds a number up over the replicas.
  ///
  /// needs: what was given is done
  waited add_up(double& number, failure_flag const& failed) {
    double* const numbers = reinterpret_cast<double*>(room_);
    numbers[me_] = number;
    waited const w = gather(
        [&](int replica, long i) {
          return replica_run{reinterpret_cast<char*>(numbers + replica),
                             i == 0 ? long(sizeof(double)) : 0};
        },
        failed);
    join_leaves(replicas_, [&](int to, int from) { numbers[to] += numbers[from]; });
    number = numbers[0];
    return w;
  }

  /// Gives all replicas what each of them has: run_of(replica, i) is its run number i, in place, of
  /// as many bytes in all replicas; empty after its last one.
  ///
  /// needs: what was given is done
  template <class RunOf>
  waited gather(RunOf const& run_of, failure_flag const& failed) {
    long begun = 0, met = 0;
    bool ends = false;
    return transport_->until(
        [&] {
          for (;;) {
            if (met < begun && transport_->has_met(rank_, int(met % 2)))
              ++met;
            else if (!ends && begun - met < 2)
              ends = !begin_round(run_of, begun), begun += !ends;
            else
              return ends && met == begun;
          }
        },
        failed);
  }

 private:
  /// Elements of a cache line, at which slices begin.
  static constexpr long line = host::columns_step<T>;
  /// The two exchanges of a bucket: every replica's part of a slice, and the slice's sum.
  enum phase : int { leaves, sums };
  static_assert(Transport::lanes >= 4, "two buckets at a time, each with two phases");

  /// Gradients that are exchanged at once: slices by replica, the largest of `stride` elements.
  struct bucket {
    T *data = nullptr, *keep = nullptr;
    host::share* slices = nullptr;
    long stride = 0;
    bool is_for_all = true;
    T* begin_of(int replica) const { return data + slices[replica].begin; }
    char* memory_of(int replica) const { return reinterpret_cast<char*>(begin_of(replica)); }
    long bytes_of(int replica) const { return slices[replica].size() * long(sizeof(T)); }
  };

  T* half_of(long number) const { return room_ + number % 2 * half_; }
  static int lane_of(long number, phase p) { return int(number % 2) * 2 + p; }
  template <class Use>
  void for_others(Use const& use) const {
    detail::for_others(me_, replicas_, use);
  }

  /// Begins to receive the own slice of all others, and to send theirs.
  ///
  /// shape: room: [replicas - 1, slice]
  void exchange_leaves(bucket const& b, T* room, int lane) {
    for_others([&](int replica) {
      receive(replica, lane, reinterpret_cast<char*>(room + room_of(replica) * b.stride),
              b.bytes_of(me_));
      send(replica, lane, b.memory_of(replica), b.bytes_of(replica));
    });
  }
  /// Begins to send the own slice's sum, and to receive those of the others into the bucket.
  ///
  /// needs: the bucket's first exchange is done, so that its slices are not read any more
  void exchange_sums(bucket const& b, int lane) {
    for_others([&](int replica) {
      receive(replica, lane, b.memory_of(replica), b.bytes_of(replica));
      send(replica, lane, b.memory_of(me_), b.bytes_of(me_));
    });
  }
  void send(int replica, int lane, char const* data, long bytes) {
    if (bytes > 0) transport_->send_to(rank_, replica, lane, data, bytes);
  }
  void receive(int replica, int lane, char* data, long bytes) {
    if (bytes > 0) transport_->receive_from(rank_, replica, lane, data, bytes);
  }
  /// Begins to exchange the runs of a number; false if no replica has one.
  template <class RunOf>
  bool begin_round(RunOf const& run_of, long number) {
    replica_run const own = run_of(me_, number);
    bool exists = own.bytes > 0;
    for_others([&](int replica) {
      replica_run const run = run_of(replica, number);
      exists = exists || run.bytes > 0;
      receive(replica, int(number % 2), run.data, run.bytes);
      send(replica, int(number % 2), own.data, own.bytes);
    });
    return exists;
  }
  /// Place of a replica's part in the room, which has none for this replica's own.
  int room_of(int replica) const { return replica - (replica > me_); }

  /// Adds the parts of the own slice, in blocks that stay in the cache.
  void add_slices(bucket const& b, T* room, team& all, void (*add)(std::ptrdiff_t, T*, T const*)) {
    constexpr long block = 4096;
    long const size = b.slices[me_].size();
    T* const own = b.begin_of(me_);
    all.run([&](int part) {
      host::share const mine = host::share_of(size, line, part, all.size());
      for (long from = mine.begin; from < mine.end; from += block) {
        long const n = mine.end - from < block ? mine.end - from : block;
        auto const at = [&](int replica) {
          return (replica == me_ ? own : room + room_of(replica) * b.stride) + from;
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
  heap_array<host::share> slices_;
  long given_ = 0, begun_ = 0, added_ = 0, done_ = 0;  // buckets of this step
};

}  // namespace pp::detail
PIPE_OPTIMIZED_END
