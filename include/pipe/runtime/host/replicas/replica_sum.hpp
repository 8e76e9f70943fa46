// SPDX-License-Identifier: BSL-1.0
//
// Sums over the replicas of a pipeline: of the gradients of a rank, bucket by bucket while other
// actions run, and of a single number. Every replica owns a shard of a bucket. It receives this
// shard from all other replicas, adds the shards in the order of the tree, and sends the sum back,
// unless with ZeRO it alone needs the sum. This is a reduce-scatter and an all-gather of 2 (n - 1)
// / n times the bucket in each direction, as in a ring, if each replica has one branch of the tree
// of accumulations. A replica with several branches sends each of them, so the order of the sum is
// the order of the tree for every division.
#pragma once

#include <cstddef>
#include <cstring>

#include <pipe/base/bytes.hpp>
#include <pipe/base/config.hpp>
#include <pipe/base/error.hpp>
#include <pipe/base/heap_array.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/runtime/host/core/backend_calls.hpp>
#include <pipe/runtime/host/core/rank_updates.hpp>
#include <pipe/runtime/host/core/team.hpp>
#include <pipe/runtime/sum_tree.hpp>
#include <pipe/transport/transport.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp::detail {

/// A rank's sums with the same rank of all other replicas. T: element type of gradients.
///
/// needs: assemble() before anything else; all replicas give buckets of the same sizes in the same
///        order
/// law:   nothing is allocated after assemble()
template <class T, replica_transport Transport>
class replica_sum {
 public:
  /// room: memory for the shards of two buckets from all other replicas. buckets: the most buckets
  /// of a step. branches: the most branches of a replica
  ///
  /// throws: error if the room is too small for this number of replicas
  [[gnu::cold]] void assemble(Transport& transport, process_place const& place, int rank,
                              char* room, long room_bytes, int buckets, int branches = 1) {
    transport_ = &transport;
    rank_ = rank;
    me_ = place.replica;
    replicas_ = place.replicas;
    room_ = reinterpret_cast<T*>(room);
    half_ = room_bytes / 2 / long(sizeof(T));
    if (long(replicas_) * branches > half_)
      throw_error<error>(
          {replicas_, " replicas are more than the ", half_ / branches, " that are planned for"});
    buckets_ = heap_array<bucket>(buckets);
    shard_ranges_ = heap_array<host::part_range>(long(buckets) * replicas_);
    before_ = heap_array<int>(replicas_ + 1);
    transport.open_lanes(rank, branches);
  }
  /// Describes a bucket that is cut into even shards, and of which all replicas need the sum.
  [[gnu::cold]] void describe(int number, long elements) {
    // Shards begin at lines, unless the room is too small for that.
    long size = (elements + replicas_ - 1) / replicas_;
    long const lines = (size + line - 1) / line * line;
    if (lines * (replicas_ - 1) <= half_) size = lines;
    describe(number, true, nullptr, [&](int replica) {
      auto const at = [&](long s) { return s * size < elements ? s * size : elements; };
      return host::part_range{at(replica), at(replica + 1)};
    });
  }
  /// Describes a bucket by its shards, shard_of(replica). is_for_all: whether all replicas need the
  /// sum. keep: the memory to which this replica's shard of the sum is copied, or null.
  template <class ShardOf>
  [[gnu::cold]] void describe(int number, bool is_for_all, T* keep, ShardOf const& shard_of) {
    bucket& b = buckets_[number];
    b.shards = shard_ranges_.begin() + long(number) * replicas_;
    b.is_for_all = is_for_all;
    b.keep = keep;
    for (int r = 0; r < replicas_; ++r) {
      b.shards[r] = shard_of(r);
      if (long const n = b.shards[r].size(); n > largest_) largest_ = n;
    }
  }

  /// Begins a step, whose accumulations are divided by `d`. If there is no room for the shards of
  /// all branches, a bucket is exchanged in several rounds, a part of each shard in each round.
  void begin(accumulation_division const& d) {
    given_ = begun_ = added_ = done_ = 0;
    division_ = d;
    int most = 0;  // branches that a replica receives
    for (int r = 0; r < replicas_; ++r) before_[r + 1] = before_[r] + branches_of(d.counts[r]);
    for (int r = 0; r < replicas_; ++r)
      if (int const n = before_[replicas_] - branches_of(d.counts[r]); n > most) most = n;
    long const fits = half_ / most;
    part_ = fits >= largest_ ? largest_ : fits >= line ? fits / line * line : fits;
    rounds_ = part_ > 0 ? (largest_ + part_ - 1) / part_ : 1;
  }
  /// Gives the next bucket, which is complete in this replica: the last branch is in `data`, the
  /// other branches are where stack_next has kept them, `apart` elements from each other.
  void give(T* data, T* partial, long apart) {
    bucket& b = buckets_[given_++];
    b.data = data, b.partial = partial, apart_ = apart;
  }
  /// Goes on as far as possible without waiting. Returns whether all buckets that were given are
  /// done.
  bool advance(team& all, void (*add)(std::ptrdiff_t, T*, T const*)) {
    for (bool moves = true; moves;) {
      moves = false;
      if (done_ < added_ &&
          (!bucket_of(done_).is_for_all || transport_->has_met(rank_, lane_of(done_, sums))))
        ++done_, moves = true;
      if (added_ < begun_ && transport_->has_met(rank_, lane_of(added_, accumulations))) {
        bucket const& b = bucket_of(added_);
        add_shards(added_, all, add);
        if (b.is_for_all) exchange_sums(added_);
        if (b.keep != nullptr) {
          host::part_range const own = shard_of(added_, me_);
          std::memcpy(b.keep + (own.begin - b.shards[me_].begin), b.data + own.begin,
                      std::size_t(own.size()) * sizeof(T));
        }
        ++added_, moves = true;
      }
      if (begun_ < given_ * rounds_ && begun_ - done_ < 2) {
        exchange_accumulations(begun_);
        ++begun_, moves = true;
      }
    }
    return done_ == given_ * rounds_;
  }
  /// Waits until the first `number` buckets are done, while also() goes on with other exchanges.
  ///
  /// needs: that many buckets are given
  template <class Also>
  waited until_done(long number, team& all, void (*add)(std::ptrdiff_t, T*, T const*),
                    failure_flag const& failed, Also const& also) {
    return transport_->until([&] { return also(), advance(all, add) || done_ >= number * rounds_; },
                             failed);
  }
  /// Adds a number up over the branches of all replicas. number: of this replica's last branch,
  /// then the sum. partial: of this replica's other branches
  ///
  /// needs: all buckets that were given are done
  waited add_up(double& number, double const* partial, failure_flag const& failed) {
    double* const numbers = reinterpret_cast<double*>(room_);
    auto const at = [&](sum_branch const& b) -> double& { return numbers[place_of(b)]; };
    int const own = before_[me_], last = before_[me_ + 1] - 1;
    for (int i = own; i < last; ++i) numbers[i] = partial[i - own];
    numbers[last] = number;
    waited const w = gather(
        [&](int replica, long i) {
          int const first = before_[replica], n = before_[replica + 1] - first;
          return replica_range{reinterpret_cast<char*>(numbers + first),
                               i == 0 ? n * long(sizeof(double)) : 0};
        },
        failed);
    division_.join_into(me_,
                        [&](sum_branch const& to, sum_branch const& from) { at(to) += at(from); });
    number = numbers[last];
    return w;
  }

  /// Gives all replicas the ranges that each of them has, in place: range_of(replica, i) is range
  /// number i of a replica, empty after the replica's last range; all replicas agree on its size.
  ///
  /// needs: all buckets that were given are done
  template <class RangeOf>
  waited gather(RangeOf const& range_of, failure_flag const& failed) {
    long begun = 0, met = 0;
    bool ends = false;
    return transport_->until(
        [&] {
          for (;;) {
            if (met < begun && transport_->has_met(rank_, int(met % 2)))
              ++met;
            else if (!ends && begun - met < 2)
              ends = !begin_round(range_of, begun), begun += !ends;
            else
              return ends && met == begun;
          }
        },
        failed);
  }

 private:
  /// Elements of a cache line, at which shards begin.
  static constexpr long line = host::column_alignment<T>;
  /// The two exchanges of a round: the branches' parts of shards, and the sums of shards.
  enum phase : int { accumulations, sums };
  static_assert(Transport::lanes >= 4, "two rounds at a time, each with two phases");

  /// Gradients that are given at once, with a shard for each replica; exchanged in one round or
  /// several.
  struct bucket {
    T *data = nullptr, *partial = nullptr, *keep = nullptr;
    host::part_range* shards = nullptr;
    bool is_for_all = true;
  };

  bucket const& bucket_of(long round) const { return buckets_[round / rounds_]; }
  /// The part of a replica's shard that a round exchanges.
  host::part_range shard_of(long round, int replica) const {
    host::part_range const all = bucket_of(round).shards[replica];
    auto const at = [&](long n) { return n < all.size() ? all.begin + n : all.end; };
    long const before = round % rounds_ * part_;
    return {at(before), at(before + part_)};
  }
  static int lane_of(long round, phase p) { return int(round % 2) * 2 + p; }
  template <class Use>
  void for_others(Use const& use) const {
    detail::for_others(me_, replicas_, use);
  }
  bool is_last(sum_branch const& b) const {
    return b.level == last_level_of(division_.counts[b.replica]);
  }
  /// The number of a branch among the branches of all replicas, in the order of replicas.
  int place_of(sum_branch const& b) const {
    return before_[b.replica] + branches_of(division_.counts[b.replica] >> (b.level + 1));
  }
  /// The part of a branch that a round adds up here; for a branch of this replica, the part that a
  /// round sends to replica `to`.
  ///
  /// shape: each half of the room: [branches of other replicas, part_]
  T* at(long round, sum_branch const& b, int to) const {
    if (b.replica != me_) {
      int const first_after = b.replica > me_ ? branches_of(division_.counts[me_]) : 0;
      return room_ + round % 2 * half_ + (place_of(b) - first_after) * part_;
    }
    bucket const& of = bucket_of(round);
    return (is_last(b) ? of.data : of.partial + (place_of(b) - before_[me_]) * apart_) +
           shard_of(round, to).begin;
  }

  /// Begins to receive this replica's shard of other replicas' branches, and to send their shards
  /// of its own branches.
  void exchange_accumulations(long round) {
    int const lane = lane_of(round, accumulations);
    for_others([&](int replica) {
      for_levels_of(division_.counts[replica], [&](int level) {
        receive(replica, lane, at(round, {replica, level}, me_), shard_of(round, me_).size());
      });
      for_levels_of(division_.counts[me_], [&](int level) {
        send(replica, lane, at(round, {me_, level}, replica), shard_of(round, replica).size());
      });
    });
  }
  /// Begins to send the sum of this replica's shard, and to receive the sums of other shards into
  /// the bucket.
  ///
  /// needs: the round's first exchange is done, so that the shards that it has sent are not read
  ///        any more
  void exchange_sums(long round) {
    int const lane = lane_of(round, sums);
    T* const data = bucket_of(round).data;
    host::part_range const own = shard_of(round, me_);
    for_others([&](int replica) {
      host::part_range const s = shard_of(round, replica);
      receive(replica, lane, data + s.begin, s.size());
      send(replica, lane, data + own.begin, own.size());
    });
  }
  void send(int replica, int lane, T const* data, long elements) {
    send_bytes(replica, lane, reinterpret_cast<char const*>(data), elements * long(sizeof(T)));
  }
  void receive(int replica, int lane, T* data, long elements) {
    receive_bytes(replica, lane, reinterpret_cast<char*>(data), elements * long(sizeof(T)));
  }
  void send_bytes(int replica, int lane, char const* data, long bytes) {
    if (bytes > 0) transport_->send_to(rank_, replica, lane, data, bytes);
  }
  void receive_bytes(int replica, int lane, char* data, long bytes) {
    if (bytes > 0) transport_->receive_from(rank_, replica, lane, data, bytes);
  }
  /// Begins to exchange range number `number` of each replica; false if no replica has one.
  template <class RangeOf>
  bool begin_round(RangeOf const& range_of, long number) {
    replica_range const own = range_of(me_, number);
    bool exists = own.bytes > 0;
    for_others([&](int replica) {
      replica_range const range = range_of(replica, number);
      exists = exists || range.bytes > 0;
      receive_bytes(replica, int(number % 2), range.data, range.bytes);
      send_bytes(replica, int(number % 2), own.data, own.bytes);
    });
    return exists;
  }

  /// Adds up the branches' parts of this replica's shard, in blocks that stay in the cache.
  void add_shards(long round, team& all, void (*add)(std::ptrdiff_t, T*, T const*)) {
    constexpr long block = 4096;
    long const size = shard_of(round, me_).size();
    all.run([&](int part) {
      host::part_range const mine = host::part_of(size, line, part, all.size());
      for (long from = mine.begin; from < mine.end; from += block) {
        long const n = mine.end - from < block ? mine.end - from : block;
        division_.join_into(me_, [&](sum_branch const& to, sum_branch const& added) {
          add(n, at(round, to, me_) + from, at(round, added, me_) + from);
        });
      }
    });
  }

  Transport* transport_ = nullptr;
  int rank_ = 0, me_ = 0, replicas_ = 1;
  T* room_ = nullptr;
  long half_ = 0;     // elements of half the room
  long largest_ = 0;  // elements of the largest shard
  heap_array<bucket> buckets_;
  heap_array<host::part_range> shard_ranges_;
  accumulation_division division_;  // of this step
  heap_array<int> before_;          // by replica: branches of earlier replicas; and the end
  long part_ = 0, rounds_ = 1;      // most elements of a shard in a round, and rounds of a bucket
  long apart_ = 0;                  // elements between partial sums
  long given_ = 0;                  // buckets of this step
  long begun_ = 0, added_ = 0, done_ = 0;  // rounds
};

}  // namespace pp::detail
PIPE_OPTIMIZED_END
