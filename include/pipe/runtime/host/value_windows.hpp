// SPDX-License-Identifier: BSL-1.0
//
// Parameters that replicas divide (ZeRO<3>): they are brought together in a ring for the launches
// that read them, and those of the next launches meanwhile.
#pragma once

#include <cstring>

#include <pipe/base/config.hpp>
#include <pipe/base/heap_array.hpp>
#include <pipe/runtime/actions.hpp>
#include <pipe/runtime/host/backend_calls.hpp>
#include <pipe/runtime/host/parameter_ring.hpp>
#include <pipe/runtime/host/rank_shards.hpp>
#include <pipe/runtime/host/team.hpp>
#include <pipe/transport/transport.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp::detail {

/// The divided parameters of one rank. They come into a ring in the order in which launches read
/// them, at most two buckets on the way; a parameter's transposed copy follows it there. What
/// leaves for them is what came first and is not read by the launch that is about to run.
///
/// needs: all replicas ask for the same launches in the same order, also one that has no samples
/// law:   what is in the ring follows from that order alone, so all replicas send and receive the
///        same; nothing is on the way when a program has run
template <class T, replica_transport Transport>
class value_windows {
 public:
  [[gnu::cold]] void assemble(pipeline_description const& d, backend_calls<T> const& calls,
                              Transport& transport, process_place const& place, int rank,
                              char* memory, arena_end const& end, rank_shards<T> const& shards,
                              team& all, failure_flag const& failed) {
    d_ = &d, calls_ = &calls, transport_ = &transport, shards_ = &shards;
    all_ = &all, failed_ = &failed;
    rank_ = rank, me_ = place.replica, replicas_ = place.replicas;
    long count = 0;
    for (int c = 0; c < d.chunks; ++c)
      if (d.chunk[c].rank == rank) cuts_of(c).for_each_divided([&](auto const&) { ++count; });
    ring_.assemble(memory + end.value_ring, end.value_ring_bytes, count);
    coming_ = heap_array<gathered>(count + 1);
  }
  /// Forgets what is in the ring: parameters have changed.
  void clear() { ring_.clear(), first_ = end_ = 0; }

  /// Brings what launch i of a program reads, and begins to bring what the next ones do. Then
  /// find() has them.
  waited bring(int chunk, program_view const& view, int i) {
    advance();
    launch const& now = view.launches[i];
    if (!make_room_for_all(chunk, now, view)) return waited::failed;
    waited const w = until_here(chunk, now, view);
    for (int next = i + 1; w == waited::done && next < view.count; ++next)
      if (begin_next(chunk, view.launches[next], now, view)) break;
    return w;
  }
  /// The memory of an operand of the launch that was brought, or null: it is no divided parameter.
  char* find(int chunk, address const& a) const {
    parameter_place const* const p = read_by(chunk, a);
    if (p == nullptr) return nullptr;
    char* const begin = ring_.find(*p);
    return a.where == region::parameters
               ? begin + a.offset - p->offset
               : begin + cuts_of(chunk).bytes_of(*p) + a.offset - p->transposed;
  }
  /// Copies all divided parameters of a chunk, one after the other as in its region. Between runs.
  waited collect(int chunk, char* values) {
    clear();
    waited w = waited::done;
    cuts_of(chunk).for_each_divided([&](parameter_place const& p) {
      if (w != waited::done) return;
      begin(chunk, p, values + p.offset, false);
      w = until([&] { return first_ == end_; });
    });
    return w;
  }
  /// The reverse: each replica takes its own parts.
  void distribute(int chunk, char const* values) const {
    cuts_of(chunk).for_each_divided_slice(me_, [&](int, long begin, long end) {
      if (begin < end)
        std::memcpy(shards_->own_values(chunk, begin), values + begin, std::size_t(end - begin));
    });
  }

 private:
  /// Lanes of their own, as gradients may be on the way.
  static constexpr int first_lane = 4;
  static_assert(Transport::lanes >= first_lane + 2);

  /// A parameter that comes, bucket by bucket, two at a time.
  struct gathered {
    int chunk = 0;
    parameter_place const* of = nullptr;
    char* to = nullptr;
    bool transposes = false;
    int next = 0, end = 0, met = 0;  // buckets: to be begun next; the end; those that are here
  };

  shard_cuts cuts_of(int chunk) const { return {d_->chunk[chunk], sizeof(T), replicas_}; }
  /// The divided parameter that an operand is, itself or transposed; or null.
  parameter_place const* read_by(int chunk, address const& a) const {
    chunk_description const& c = d_->chunk[chunk];
    if (a.where == region::parameters) return divided_at(c, a.offset);
    if (a.where != region::transposed || a.offset >= c.divided_transposed_bytes) return nullptr;
    parameter_place const* found = nullptr;
    cuts_of(chunk).for_each_divided([&](parameter_place const& p) {
      if (p.transposed >= 0 && p.transposed <= a.offset) found = &p;
    });
    return found;
  }
  bool reads(int chunk, launch const& l, program_view const& view, parameter_place const& p) const {
    for (int k = 0; k < l.count; ++k)
      if (read_by(chunk, view.operands[l.first + k].at) == &p) return true;
    return false;
  }
  long bytes_of(int chunk, parameter_place const& p) const {
    return cuts_of(chunk).bytes_of(p) * (p.transposed >= 0 ? 2 : 1);
  }

  bool make_room_for_all(int chunk, launch const& now, program_view const& view) {
    for (int k = 0; k < now.count; ++k)
      if (parameter_place const* const p = read_by(chunk, view.operands[now.first + k].at))
        if (!make_room(chunk, *p, now, view)) return false;
    return true;
  }
  /// Takes memory for a parameter that launch `now` reads, from those that it does not read, and
  /// begins to bring it. False if the run has failed.
  bool make_room(int chunk, parameter_place const& p, launch const& now, program_view const& view) {
    if (ring_.find(p) != nullptr) return true;
    char* at = nullptr;
    while ((at = ring_.take(p, bytes_of(chunk, p))) == nullptr) {
      // A launch's parameters are of two layers at most, so they fit if nothing is before them.
      bool const in_the_way = ring_.is_empty() || reads(chunk, now, view, ring_.first());
      if (until([&] { return first_ == end_; }) != waited::done) return false;
      if (!in_the_way) {
        ring_.drop_first();
        continue;
      }
      if (ring_.is_empty())
        throw_error<error>(
            {"ZeRO<3>: a launch reads parameters of more than two layers, from layer ", now.layer,
             " on: give ZeRO<2>"});
      ring_.clear();
      return make_room(chunk, p, now, view) && make_room_for_all(chunk, now, view);
    }
    begin(chunk, p, at, p.transposed >= 0);
    return true;
  }
  /// Begins to bring what a later launch reads, as far as there is room beside what launch `now`
  /// reads. Returns whether there was something to bring.
  bool begin_next(int chunk, launch const& l, launch const& now, program_view const& view) {
    bool some = false;
    for (int k = 0; k < l.count; ++k) {
      parameter_place const* const p = read_by(chunk, view.operands[l.first + k].at);
      if (p == nullptr || ring_.find(*p) != nullptr) continue;
      some = true;
      char* at = nullptr;
      // Parameters before those that are read now have been read: none of them still comes.
      while ((at = ring_.take(*p, bytes_of(chunk, *p))) == nullptr && !ring_.is_empty() &&
             !reads(chunk, now, view, ring_.first()))
        ring_.drop_first();
      if (at == nullptr) break;
      begin(chunk, *p, at, p->transposed >= 0);
    }
    return some;
  }
  /// Lets a parameter come, after those that come already.
  ///
  /// transposes: whether there is room for its transposed copy behind it, which is made when it is
  /// here
  void begin(int chunk, parameter_place const& p, char* to, bool transposes) {
    shard_cuts const cuts = cuts_of(chunk);
    int const first = cuts.bucket_of(p.offset),
              last = cuts.bucket_of(p.offset + cuts.bytes_of(p) - 1);
    coming_[end_] = {chunk, &p, to, transposes, first, last + 1, first};
    end_ = after(end_);
    advance();
  }
  long after(long i) const { return i + 1 < coming_.size() ? i + 1 : 0; }
  template <class Condition>
  waited until(Condition const& is_so) {
    return transport_->until([&] { return advance(), is_so(); }, *failed_);
  }
  /// Waits until all that a launch reads is here.
  ///
  /// law: costs nothing if it is
  waited until_here(int chunk, launch const& l, program_view const& view) {
    auto const is_here = [&] {
      for (long i = first_; i != end_; i = after(i))
        if (coming_[i].chunk == chunk && reads(chunk, l, view, *coming_[i].of)) return false;
      return true;
    };
    return is_here() ? waited::done : until(is_here);
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
        if (g.transposes) transpose(g);
        first_ = after(first_);
      } else {
        return;
      }
    }
  }
  bool has_met(int bucket) {
    return replicas_ == 1 || transport_->has_met(rank_, first_lane + bucket % 2);
  }
  /// Begins to send the own slice of a bucket, and to receive the others.
  void begin_bucket(gathered const& g, int bucket) {
    shard_cuts const cuts = cuts_of(g.chunk);
    auto const slice = [&](int replica, auto const& use) {
      int const s = cuts.slice_of(bucket, replica);
      long const begin = cuts.begin_of(bucket, s), bytes = cuts.begin_of(bucket, s + 1) - begin;
      if (bytes > 0) use(begin, g.to + begin - g.of->offset, bytes);
    };
    slice(me_, [&](long begin, char* to, long bytes) {
      char const* const own = reinterpret_cast<char const*>(shards_->own_values(g.chunk, begin));
      std::memcpy(to, own, std::size_t(bytes));
      for_others(me_, replicas_, [&](int replica) {
        transport_->send_to(rank_, replica, first_lane + bucket % 2, own, bytes);
      });
    });
    for_others(me_, replicas_, [&](int replica) {
      slice(replica, [&](long, char* to, long bytes) {
        transport_->receive_from(rank_, replica, first_lane + bucket % 2, to, bytes);
      });
    });
  }
  /// Makes the transposed copy of a parameter that is here, behind it.
  void transpose(gathered const& g) {
    parameter_place const& p = *g.of;
    T* const values = reinterpret_cast<T*>(g.to);
    T* const to = reinterpret_cast<T*>(g.to + cuts_of(g.chunk).bytes_of(p));
    all_->run([&](int part) {
      host::share const rows = host::share_of(p.rows, host::columns_step<T>, part, all_->size());
      calls_->transpose(values + rows.begin * p.columns, rows.size(), p.columns, p.columns,
                        to + rows.begin, p.rows);
    });
  }

  pipeline_description const* d_ = nullptr;
  backend_calls<T> const* calls_ = nullptr;
  Transport* transport_ = nullptr;
  rank_shards<T> const* shards_ = nullptr;
  team* all_ = nullptr;
  failure_flag const* failed_ = nullptr;
  int rank_ = 0, me_ = 0, replicas_ = 1;
  parameter_ring ring_;
  heap_array<gathered> coming_;  // a queue, from first_ to end_
  long first_ = 0, end_ = 0;
};

}  // namespace pp::detail
PIPE_OPTIMIZED_END
