// SPDX-License-Identifier: BSL-1.0
//
// The gradients of a mini-batch that is a sum of several runs, on one rank. The gradients of a run
// are joined with those of the runs before it, and in the last run with those of other replicas.
#pragma once

#include <cstring>

#include <pipe/base/config.hpp>
#include <pipe/base/error.hpp>
#include <pipe/base/heap_array.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/runtime/actions.hpp>
#include <pipe/runtime/host/core/backend_calls.hpp>
#include <pipe/runtime/host/core/rank_setup.hpp>
#include <pipe/runtime/host/core/replica_parts.hpp>
#include <pipe/runtime/host/core/team.hpp>
#include <pipe/runtime/gradient_buckets.hpp>
#include <pipe/runtime/shards.hpp>
#include <pipe/runtime/sum_tree.hpp>
#include <pipe/transport/transport.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp::detail {

/// The accumulations of one rank. Gradients of a chunk are joined bucket by bucket while the last
/// action of a run that writes to them completes them, so that replicas exchange the buckets while
/// the rank goes on.
///
/// needs: assemble() once; the team and the flag in rank_setup live as long; begin() before each
///        run, whose job lives until the run ends
/// law:   a mini-batch of one accumulation, or a run that does not train, costs nothing
template <class T, class Transport>
class accumulation_sums {
  using parts = replica_parts<T, Transport>;

 public:
  [[gnu::cold]] void assemble(rank_setup<T, Transport> const& of,
                              typename parts::shards const& shards) {
    d_ = &of.d, calls_ = &of.calls, rank_ = of.rank, memory_ = of.memory, sums_ = of.end.sums;
    all_ = &of.threads, failed_ = &of.failed, shards_ = &shards;
    if (d_->accumulations == 1 && of.place.replicas == 1 && d_->zero < 2) return;
    left_ = heap_array<int>(d_->chunks);
    buckets_ = gradient_buckets(*d_, sizeof(T), rank_);
    if constexpr (may_divide) assemble_replicas(of);
  }

  /// Begins a run: counts the actions after which a chunk's gradients are complete.
  void begin(job const& j) {
    job_ = &j;
    is_on_ = j.adds_gradients() && (has_accumulations(j) || d_->divides_gradients);
    if (exchanges()) replicas_.begin({j.part.shares, j.part.replicas});
    if constexpr (may_divide) windows_.clear();
    if (!is_on_) return;
    if constexpr (may_divide) ring_.clear();
    // Other holders add to a chunk until the end.
    for (int c = 0; c < d_->chunks; ++c) left_[c] = d_->chunk[c].holders > 1;
    for (action const& a : d_->rank[rank_].training)
      if (makes_weight_gradient(a.kind) && samples_in(*d_, j, a.micro_batch) > 0) ++left_[a.chunk];
    next_ = 0;
  }
  /// Sets the operands of launch i of a chunk's program. Values of divided parameters are in the
  /// windows, their gradients in the ring.
  waited place([[maybe_unused]] int chunk, program_set const& set, program p, int i,
               region_bases const& at, void** operand) {
    program_view const& view = set.programs[int(p)];
    launch const& l = view.launches[i];
    placed_operand const* const from = view.operands + l.first;
    for (int k = 0; k < l.count; ++k) operand[k] = at.at(from[k].at);
    if constexpr (may_divide)
      if (d_->zero > 1)
        return place_divided(divided_.program_number(*d_, chunk, set, p), i, operand);
    return waited::done;
  }
  /// Takes part in the exchanges of an action for which only other replicas have samples, launch by
  /// launch: other replicas may wait for this replica's part of a gradient before they bring more
  /// parameters.
  waited skip([[maybe_unused]] action const& a) {
    waited w = waited::done;
    if constexpr (may_divide) {
      auto const nothing = [](auto const&...) {};
      auto const bring = [&](program_set const& set, program p) {
        program_view const& view = set.programs[int(p)];
        int const number = divided_.program_number(*d_, a.chunk, set, p);
        for (int i = 0; i < view.count && w == waited::done; ++i) {
          w = windows_.bring(number, i);
          join_after(0, a.chunk, set, view, i);
        }
      };
      if (d_->zero > 2) run_action(*d_, *job_, a, bring, nothing, nothing, nothing);
    }
    return w;
  }
  typename parts::windows& windows() { return windows_; }
  /// Joins what a launch has completed, and goes on with exchanges.
  void after_launch(int chunk, program_set const& set, program_view const& view, int launch) {
    join_after(1, chunk, set, view, launch);
  }
  /// Joins what an action has completed, and goes on with exchanges.
  void after(action const& a) {
    if (!is_on_) return;
    if (makes_weight_gradient(a.kind)) --left_[a.chunk];
    join_complete();
    go_on();
  }
  /// Ends the run's actions: in the last run of a step, gradients are the sums over all
  /// accumulations.
  ///
  /// needs: all holders of the rank's chunks are done with the run
  waited finish() {
    if (!is_on_) return waited::done;
    for (int& n : left_) n = 0;
    join_complete();
    return until_done(buckets_.size());
  }
  /// In the last run of a step, replaces the sums of each loss over this run's micro-batches by
  /// sums over the mini-batch.
  ///
  /// shape: sums[losses], partial[losses][levels of the accumulations]: the sums that stack_next
  ///        keeps between runs
  waited add_up_losses(double* sums, double* partial) {
    waited all = waited::done;
    for (int loss = 0; loss < d_->losses; ++loss, partial += levels_of(d_->accumulations)) {
      double& sum = sums[loss];
      stack_next(
          job_->part.accumulation, job_->part.accumulations, [&](int i) { sum += partial[i]; },
          [&](int i) { partial[i] = sum; });
      if (exchanges() && all == waited::done) all = replicas_.add_up(sum, partial, *failed_);
    }
    return all;
  }
  /// Gives all replicas the ranges that each of them has: see replica_sum::gather.
  ///
  /// needs: finish()
  template <class RangeOf>
  waited gather(RangeOf const& range_of) {
    return exchanges() ? replicas_.gather(range_of, *failed_) : waited::done;
  }

 private:
  static constexpr bool may_divide = replica_transport<Transport>;

  bool exchanges() const { return detail::exchanges(*job_); }
  void go_on() {
    if (exchanges()) replicas_.advance(*all_, calls_->add);
  }
  /// Waits until the first `number` buckets are done, so that their gradients may be overwritten.
  waited until_done(long number) {
    if (!exchanges()) return waited::done;
    return replicas_.until_done(number, *all_, calls_->add, *failed_, [&] {
      if constexpr (may_divide) windows_.advance();
    });
  }
  /// Joins the next buckets, as long as they are complete.
  template <class Complete>
  void join_while(Complete const& is_complete) {
    for (; next_ < buckets_.size() && is_complete(buckets_[next_]); ++next_) join(buckets_[next_]);
  }
  /// Joins the buckets that a launch completes, if the launch is in the last action that adds to
  /// its chunk. left: the number of actions that still add to the chunk, the current one included
  void join_after(int left, int chunk, program_set const& set, program_view const& view,
                  int launch) {
    if (!is_on_ || left_[chunk] != left || &view != &set.weight_program()) return;
    int const which = &set == &d_->chunk[chunk].dropping;
    join_while(
        [&](gradient_bucket const& p) { return p.chunk == chunk && p.launch[which] <= launch; });
    go_on();
  }
  void join_complete() {
    join_while([&](gradient_bucket const& p) { return left_[p.chunk] == 0; });
  }
  /// The elements of a bucket. For a divided parameter the ring has them; if no launch has written
  /// them, they get memory there now.
  T* data_of(gradient_bucket const& p) {
    if constexpr (may_divide)
      if (p.parameter >= 0) {
        char* const begin = take(p.parameter);
        long const offset = divided_.parameters()[p.parameter].of->offset;
        return begin == nullptr ? nullptr : reinterpret_cast<T*>(begin + p.begin - offset);
      }
    return reinterpret_cast<T*>(memory_ + d_->chunk[p.chunk].gradients + p.begin);
  }
  /// Memory in the ring for the gradient of a divided parameter, which may be in the ring already.
  /// Waits until earlier gradients are done if there is no room. Null if the run has failed
  /// meanwhile.
  char* take(int parameter) {
    auto const& parameters = divided_.parameters();
    char* at = ring_.find(parameter);
    while (at == nullptr && (at = ring_.take(parameter, parameters[parameter].bytes)) == nullptr) {
      long const last = last_bucket_[ring_.first()];
      if (last >= next_)
        throw_error<error>({"ZeRO<", d_->zero, ">: layer ", parameters[parameter].of->layer,
                            "'s gradients are computed before those of layer ",
                            parameters[ring_.first()].of->layer, " are complete"});
      if (until_done(last + 1) != waited::done) return nullptr;
      ring_.drop_first();
    }
    return at;
  }
  /// Sets the operands of launch i that are divided parameters or their gradients, in the rings.
  /// Waits for values that other replicas have, and until there is room for gradients.
  ///
  /// throws: error if a launch needs more than a ring holds: see arena_facts::ring_bytes
  waited place_divided(int program, int i, void** operand)
    requires may_divide
  {
    if (d_->zero > 2)
      if (waited const w = windows_.bring(program, i); w != waited::done) return w;
    for (auto const& o : divided_.of_launch(program, i)) {
      char* const begin = o.is_gradient ? take(o.parameter) : windows_.find(o.parameter);
      if (begin == nullptr) return waited::failed;
      operand[o.operand] = begin + o.offset;
    }
    return waited::done;
  }
  /// The part of assemble() that is for replicas.
  [[gnu::cold]] void assemble_replicas(rank_setup<T, Transport> const& of) {
    pipeline_description const& d = of.d;
    process_place const& place = of.place;
    arena_end const& end = of.end;
    divided_.assemble(d, sizeof(T), rank_);
    windows_.assemble(of, replicas_, *shards_, divided_);
    long const parameters = divided_.parameters().size();
    ring_.assemble(memory_ + end.gradient_ring, end.gradient_ring_bytes, parameters);
    last_bucket_ = heap_array<long>(parameters);
    for (long i = 0; i < buckets_.size(); ++i) {
      gradient_bucket& p = buckets_[i];
      if (d.divides_gradients) p.parameter = divided_.parameter_of(p.chunk, p.number);
      if (p.parameter < 0) continue;
      last_bucket_[p.parameter] = i;
      shard_cuts const cuts{d.chunk[p.chunk], sizeof(T), place.replicas};
      int const own = cuts.shard_of(p.number, place.replica);
      p.keep =
          reinterpret_cast<char*>(shards_->own_gradients(p.chunk, cuts.begin_of(p.number, own)));
    }
    if (place.replicas == 1) return;
    rank_description const& mine = d.rank[rank_];
    char* const room = memory_ + (d.zero > 0 ? end.room : mine.replica_room);
    long const room_bytes = d.zero > 0 ? end.room_bytes : mine.replica_room_bytes;
    int const most = most_accumulations(d.accumulations, place.replicas, d.accumulation_room);
    replicas_.assemble(of.transport, place, rank_, room, room_bytes, int(buckets_.size()),
                       levels_of(most) + 1);
    for (int i = 0; i < int(buckets_.size()); ++i) describe(place, i);
  }
  /// Describes the exchange of a bucket to replica_sum. With ZeRO its shards are those that the
  /// replicas own.
  [[gnu::cold]] void describe(process_place const& place, int number) {
    gradient_bucket const& p = buckets_[number];
    constexpr long width = sizeof(T);
    if (d_->zero == 0) return replicas_.describe(number, (p.end - p.begin) / width);
    shard_cuts const cuts{d_->chunk[p.chunk], width, place.replicas};
    auto const shard_of = [&](int replica) {
      auto const at = [&](int s) { return (cuts.begin_of(p.number, s) - p.begin) / width; };
      int const s = cuts.shard_of(p.number, replica);
      return host::part_range{at(s), at(s + 1)};
    };
    replicas_.describe(number, p.is_for_all, reinterpret_cast<T*>(p.keep), shard_of);
  }
  /// Joins a bucket with the partial sums of the accumulations before this accumulation, and gives
  /// the sum to other replicas if the accumulation is the last.
  void join(gradient_bucket const& p) {
    job const& j = *job_;
    chunk_description const& c = d_->chunk[p.chunk];
    rank_description const& mine = d_->rank[rank_];
    T* const own = data_of(p);
    if (own == nullptr) return;  // the run has failed
    long const n = (p.end - p.begin) / long(sizeof(T)), apart = mine.level_bytes / long(sizeof(T));
    T* const sums = reinterpret_cast<T*>(memory_ + sums_ + c.in_level + p.begin);
    all_->run([&](int part) {
      host::part_range const s = host::part_of(n, host::column_alignment<T>, part, all_->size());
      auto const kept = [&](int i) { return sums + i * apart + s.begin; };
      std::size_t const bytes = sizeof(T) * std::size_t(s.size());
      if (j.batch.samples == 0)
        std::memset(own + s.begin, 0, bytes);  // no launch has overwritten the accumulation before
      stack_next(
          j.part.accumulation, j.part.accumulations,
          [&](int i) { calls_->add(s.size(), own + s.begin, kept(i)); },
          [&](int i) { std::memcpy(kept(i), own + s.begin, bytes); });
    });
    if (exchanges()) return replicas_.give(own, sums, apart);
    if constexpr (may_divide)
      if (p.keep != nullptr &&
          is_last_accumulation(j))  // no other replica has a part of the bucket
        std::memcpy(p.keep, own, std::size_t(p.end - p.begin));
  }

  pipeline_description const* d_ = nullptr;
  backend_calls<T> const* calls_ = nullptr;
  job const* job_ = nullptr;
  team* all_ = nullptr;
  failure_flag const* failed_ = nullptr;
  int rank_ = 0;
  char* memory_ = nullptr;
  typename parts::shards const* shards_ = nullptr;
  heap_array<gradient_bucket> buckets_;
  typename parts::operands divided_;
  typename parts::ring ring_;     // gradients of divided parameters
  heap_array<long> last_bucket_;  // by divided parameter: the last bucket of its gradient
  heap_array<int> left_;          // by chunk: actions of this run that still add to its gradients
  long next_ = 0;                 // the bucket to be joined next
  long sums_ = 0;                 // offset of the partial sums
  bool is_on_ = false;
  typename parts::windows windows_;
  typename parts::sum replicas_;
};

}  // namespace pp::detail
PIPE_OPTIMIZED_END
