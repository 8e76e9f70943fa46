// SPDX-License-Identifier: BSL-1.0
//
// The values of parameters that replicas divide (ZeRO<3>), which are brought together in a ring for
// the launches that read them, ahead of these launches.
#pragma once

#include <cstring>

#include <pipe/base/config.hpp>
#include <pipe/base/heap_array.hpp>
#include <pipe/runtime/actions.hpp>
#include <pipe/runtime/host/core/backend_calls.hpp>
#include <pipe/runtime/host/core/rank_setup.hpp>
#include <pipe/runtime/host/core/team.hpp>
#include <pipe/runtime/host/replicas/divided_operands.hpp>
#include <pipe/runtime/host/replicas/parameter_ring.hpp>
#include <pipe/runtime/host/replicas/rank_shards.hpp>
#include <pipe/runtime/host/replicas/replica_sum.hpp>
#include <pipe/transport/transport.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp::detail {

/// The divided parameters of one rank. They come into a ring in the order in which launches read
/// them, with at most two buckets on the way; the copies of a parameter are behind its
/// values. To make room, the parameter that came first leaves, unless the launch that is about to
/// run reads it.
///
/// needs: all replicas call bring() for the same launches in the same order, even a replica without
///        samples
/// law:   the contents of the ring follow from this order alone, so all replicas send and receive
///        the same; no parameter is on the way when a program has run
template <class T, replica_transport Transport>
class value_windows {
 public:
  [[gnu::cold]] void assemble(rank_setup<T, Transport> const& of, replica_sum<T, Transport>& sums,
                              rank_shards<T> const& shards, divided_operands const& divided) {
    calls_ = &of.calls, transport_ = &of.transport, sums_ = &sums, divided_ = &divided;
    all_ = &of.threads, failed_ = &of.failed;
    rank_ = of.rank, me_ = of.place.replica, replicas_ = of.place.replicas;
    long const count = of.d.zero > 2 ? divided.parameters().size() : 0;
    ring_.assemble(of.memory + of.end.value_ring, of.end.value_ring_bytes, count);
    coming_ = heap_array<gathered>(count + 1);
    if (count == 0) return;
    shard_ranges_ = heap_array<host::part_range>(long(replicas_) * divided.buckets());
    own_ = heap_array<char*>(divided.buckets());
    for (divided_parameter const& p : divided.parameters())
      list_shards(p, {of.d.chunk[p.chunk], sizeof(T), replicas_}, shards);
  }
  /// Empties the ring, as parameters have changed.
  void clear() { ring_.clear(), first_ = end_ = 0; }

  /// Brings the parameters that launch i of a program reads, and begins to bring those that the
  /// next launches read. Afterwards find() returns the parameters of launch i.
  waited bring(int program, int i) {
    advance();
    view<divided_operand> const now = divided_->of_launch(program, i);
    if (!make_room_for_all(now)) return waited::failed;
    waited const w = until_here(now);
    if (w == waited::done) begin_next(divided_->after_launch(program, i), now);
    return w;
  }
  /// Goes on as far as possible without waiting.
  void advance() {
    while (first_ != end_) {
      gathered& g = coming_[first_];
      if (g.met < g.next && has_met(g.met)) {
        ++g.met;
      } else if (g.next < g.end && g.next - g.met < 2) {
        begin_bucket(g, g.next++);
      } else if (g.met == g.end) {
        if (g.copies) make_copies(g);
        first_ = after(first_);
      } else {
        return;
      }
    }
  }
  /// The memory of a parameter that the launch of the last bring() reads.
  char* find(int parameter) const { return ring_.find(parameter); }
  /// Between runs: copies all divided parameters of a chunk to `values`, at the offsets of the
  /// chunk's region.
  waited collect(int chunk, char* values) {
    waited w = waited::done;
    auto const& all = divided_->parameters();
    for (int i = 0; i < int(all.size()) && w == waited::done; ++i)
      if (all[i].chunk == chunk) w = collect_one(i, values + all[i].of->offset);
    return w;
  }
  /// The reverse of collect(): each replica takes its own parts from `values`.
  void distribute(int chunk, char const* values) const {
    auto const& all = divided_->parameters();
    for (int i = 0; i < int(all.size()); ++i)
      if (all[i].chunk == chunk) distribute_one(i, values + all[i].of->offset);
  }
  /// Between runs: memory in the ring for one parameter, valid until the next call for a parameter.
  char* room_of(int chunk, parameter_place const& p) {
    clear();
    int const i = number_of(chunk, p);
    return ring_.take(i, parameter(i).bytes);
  }
  /// As room_of(), with the parameter's values; null if a replica does not take part.
  char* bring_alone(int chunk, parameter_place const& p) {
    char* const to = room_of(chunk, p);
    return collect_one(number_of(chunk, p), to) == waited::done ? to : nullptr;
  }
  /// Takes this replica's parts of one parameter from `values`.
  void distribute(int chunk, parameter_place const& p, char const* values) const {
    distribute_one(number_of(chunk, p), values);
  }
  /// use(address, begin, bytes) for this replica's parts of one parameter, `begin` bytes from the
  /// parameter's start.
  template <class Use>
  void for_each_own(int chunk, parameter_place const& p, Use const& use) const {
    range const buckets = parameter(number_of(chunk, p)).buckets;
    for (int b = buckets.begin; b < buckets.end; ++b)
      if (host::part_range const own = shard(b, me_); own.size() > 0)
        use(own_[b], own.begin, own.size());
  }

 private:
  /// The first of two lanes of the transport that replica_sum does not use, as gradients may be on
  /// the way.
  static constexpr int first_lane = 4;
  static_assert(Transport::lanes >= first_lane + 2);

  /// A parameter that is being brought, bucket by bucket, two buckets at a time.
  struct gathered {
    int parameter = 0;
    char* to = nullptr;
    bool copies = false;             // whether copies are made behind the values
    int next = 0, end = 0, met = 0;  // buckets: the next to begin; the end; the next to arrive
  };

  /// Lists the shards of a parameter's buckets, and the addresses of this replica's shards.
  [[gnu::cold]] void list_shards(divided_parameter const& p, shard_cuts const& cuts,
                                 rank_shards<T> const& shards) {
    int const first = cuts.bucket_of(p.of->offset);
    for (int b = 0; b < p.buckets.size(); ++b) {
      int const number = p.buckets.begin + b;
      for (int r = 0; r < replicas_; ++r) {
        int const s = cuts.shard_of(first + b, r);
        shard_ranges_[long(number) * replicas_ + r] = {
            cuts.begin_of(first + b, s) - p.of->offset,
            cuts.begin_of(first + b, s + 1) - p.of->offset};
      }
      own_[number] = reinterpret_cast<char*>(
          shards.own_values(p.chunk, p.of->offset + shard(number, me_).begin));
    }
  }
  /// The shard of a replica: bytes from the start of the bucket's parameter.
  host::part_range shard(int bucket, int replica) const {
    return shard_ranges_[long(bucket) * replicas_ + replica];
  }
  divided_parameter const& parameter(int i) const { return divided_->parameters()[i]; }
  int number_of(int chunk, parameter_place const& p) const {
    int i = 0;
    while (parameter(i).chunk != chunk || parameter(i).of->offset != p.offset) ++i;
    return i;
  }
  waited collect_one(int i, char* to) {
    begin(i, to, false);
    return until([&] { return first_ == end_; });
  }
  void distribute_one(int i, char const* values) const {
    for (int b = parameter(i).buckets.begin; b < parameter(i).buckets.end; ++b)
      if (host::part_range const own = shard(b, me_); own.size() > 0)
        std::memcpy(own_[b], values + own.begin, std::size_t(own.size()));
  }
  static bool reads(view<divided_operand> launch, int parameter) {
    for (divided_operand const& o : launch)
      if (o.parameter == parameter && !o.is_gradient) return true;
    return false;
  }

  bool make_room_for_all(view<divided_operand> now) {
    for (divided_operand const& o : now)
      if (!o.is_gradient && !make_room(o.parameter, now)) return false;
    return true;
  }
  /// Takes memory for a parameter that launch `now` reads, if necessary from parameters that the
  /// launch does not read, and begins to bring the parameter. False if the run has failed.
  bool make_room(int i, view<divided_operand> now) {
    if (ring_.find(i) != nullptr) return true;
    char* at = nullptr;
    while ((at = ring_.take(i, parameter(i).copies.end())) == nullptr) {
      // The parameters of a launch are of at most two layers, so they fit in an empty ring.
      bool const in_the_way = ring_.is_empty() || reads(now, ring_.first());
      if (until([&] { return first_ == end_; }) != waited::done) return false;
      if (!in_the_way) {
        ring_.drop_first();
        continue;
      }
      if (ring_.is_empty())
        throw_error<error>({"ZeRO<3>: a launch reads parameters of more than two layers, such as ",
                            parameter(i).of->layer, ": give ZeRO<2>"});
      ring_.clear();
      return make_room(i, now) && make_room_for_all(now);
    }
    begin(i, at, true);
    return true;
  }
  /// Begins to bring the parameters of the next launch that reads a parameter outside of the ring,
  /// as far as there is room beside the parameters of launch `now`. later: the operands of all
  /// launches after `now`
  void begin_next(view<divided_operand> later, view<divided_operand> now) {
    int launch = -1;
    for (divided_operand const& o : later) {
      if (launch >= 0 && o.launch != launch) break;
      if (o.is_gradient || ring_.find(o.parameter) != nullptr) continue;
      launch = o.launch;
      char* at = nullptr;
      // Parameters in front of those of launch `now` have been read, so none of them is still on
      // the way.
      while ((at = ring_.take(o.parameter, parameter(o.parameter).copies.end())) == nullptr &&
             !ring_.is_empty() && !reads(now, ring_.first()))
        ring_.drop_first();
      if (at == nullptr) break;
      begin(o.parameter, at, true);
    }
  }
  /// Begins to bring a parameter, behind those that are being brought.
  ///
  /// copies: makes the copies behind the values once these are here
  void begin(int i, char* to, bool copies) {
    range const buckets = parameter(i).buckets;
    coming_[end_] = {i, to, copies, buckets.begin, buckets.end, buckets.begin};
    end_ = after(end_);
    advance();
  }
  long after(long i) const { return i + 1 < coming_.size() ? i + 1 : 0; }
  /// Waits for a condition, while sums of gradients go on.
  template <class Condition>
  waited until(Condition const& is_so) {
    auto const is_now = [&] {
      sums_->advance(*all_, calls_->add);
      advance();
      return is_so();
    };
    return transport_->until(is_now, *failed_);
  }
  /// Waits until all parameters that a launch reads are here.
  ///
  /// law: costs nothing if they are here already
  waited until_here(view<divided_operand> now) {
    auto const is_here = [&] {
      for (long i = first_; i != end_; i = after(i))
        if (reads(now, coming_[i].parameter)) return false;
      return true;
    };
    return is_here() ? waited::done : until(is_here);
  }

  bool has_met(int bucket) {
    return replicas_ == 1 || transport_->has_met(rank_, first_lane + bucket % 2);
  }
  /// Begins to send this replica's shard of a bucket, and to receive the other shards.
  void begin_bucket(gathered const& g, int bucket) {
    int const lane = first_lane + bucket % 2;
    if (host::part_range const own = shard(bucket, me_); own.size() > 0) {
      std::memcpy(g.to + own.begin, own_[bucket], std::size_t(own.size()));
      for_others(me_, replicas_, [&](int replica) {
        transport_->send_to(rank_, replica, lane, own_[bucket], own.size());
      });
    }
    for_others(me_, replicas_, [&](int replica) {
      if (host::part_range const s = shard(bucket, replica); s.size() > 0)
        transport_->receive_from(rank_, replica, lane, g.to + s.begin, s.size());
    });
  }
  /// Makes the copies of a parameter that is here, behind its values.
  void make_copies(gathered const& g) {
    divided_parameter const& p = parameter(g.parameter);
    if (!p.copies.is_narrow && !p.copies.is_transposed) return;
    all_->run([&](int part) {
      host::part_range const own = calls_->rows_of(*p.of, part, all_->size());
      T const* const values = reinterpret_cast<T const*>(g.to);
      if (p.copies.is_narrow) calls_->copy_rows(*p.of, own, values, g.to + p.copies.narrow);
      if (p.copies.is_transposed)
        calls_->transpose_rows(*p.of, own, values, g.to + p.copies.transposed());
    });
  }

  backend_calls<T> const* calls_ = nullptr;
  Transport* transport_ = nullptr;
  replica_sum<T, Transport>* sums_ = nullptr;
  divided_operands const* divided_ = nullptr;
  team* all_ = nullptr;
  failure_flag const* failed_ = nullptr;
  int rank_ = 0, me_ = 0, replicas_ = 1;
  parameter_ring ring_;
  heap_array<gathered> coming_;  // a queue, from first_ to end_
  long first_ = 0, end_ = 0;
  heap_array<host::part_range> shard_ranges_;  // by bucket and replica
  heap_array<char*> own_;                      // this replica's shard, by bucket
};

}  // namespace pp::detail
PIPE_OPTIMIZED_END
