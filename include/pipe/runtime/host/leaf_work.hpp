// SPDX-License-Identifier: BSL-1.0
//
// The gradients of a mini-batch that is a sum of several runs, on one rank: those of a run are
// joined with those of the runs before it, and at the end with those of other replicas.
#pragma once

#include <cstring>

#include <pipe/base/config.hpp>
#include <pipe/base/heap_array.hpp>
#include <pipe/runtime/actions.hpp>
#include <pipe/runtime/host/backend_calls.hpp>
#include <pipe/runtime/host/replica_sum.hpp>
#include <pipe/runtime/host/team.hpp>
#include <pipe/runtime/leaves.hpp>
#include <pipe/transport/transport.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp::detail {

/// No other replica: for a transport within one.
template <class T, class Transport>
struct no_replica_sum {
  void assemble(Transport&, process_place const&, int, char*, long, int) {}
  void begin() {}
  void give(T*, long) {}
  bool advance(team&, void (*)(std::ptrdiff_t, T*, T const*)) { return true; }
  waited finish(team&, void (*)(std::ptrdiff_t, T*, T const*), failure_flag const&) {
    return waited::done;
  }
  waited add_up(double&, failure_flag const&) { return waited::done; }
};
template <class T, class Transport>
struct replica_sum_of {
  using type = no_replica_sum<T, Transport>;
};
template <class T, replica_transport Transport>
struct replica_sum_of<T, Transport> {
  using type = replica_sum<T, Transport>;
};

/// The leaves of one rank. A chunk's gradients are joined as soon as its last action of a run is
/// done, the last chunk first, so that replicas exchange them while the rank goes on.
///
/// needs: assemble() once; begin() before each run
/// law:   a mini-batch of one leaf, or a run that does not train, costs nothing
template <class T, class Transport>
class leaf_work {
 public:
  [[gnu::cold]] void assemble(pipeline_description const& d, backend_calls<T> const& calls,
                              Transport& transport, process_place const& place, int rank,
                              char* memory) {
    d_ = &d, calls_ = &calls, rank_ = rank, memory_ = memory;
    rank_description const& mine = d.rank[rank];
    left_ = heap_array<int>(d.chunks);
    replicas_.assemble(transport, place, rank, memory + mine.received_leaves,
                       mine.received_leaf_bytes, d.chunks);
  }

  void begin(job const& j) {
    is_on_ = j.what == job::kind::train && has_leaves(j);
    if (!is_on_) return;
    for (int& n : left_) n = 0;
    rank_description const& mine = d_->rank[rank_];
    for (action const* a = mine.training; a < mine.training + mine.training_count; ++a)
      if (makes_weight_gradient(a->kind) && samples_in(*d_, j, a->micro_batch) > 0)
        ++left_[a->chunk];
    next_ = d_->chunks - 1;
    replicas_.begin();
  }
  /// Goes on after an action.
  void after(job const& j, team& all, action const& a) {
    if (!is_on_) return;
    if (makes_weight_gradient(a.kind) && --left_[a.chunk] == 0) join_complete(j, all);
    if (j.replicas > 1 && is_last_leaf(j)) replicas_.advance(all, calls_->add);
  }
  /// Ends the run's actions: in the last run of a step, gradients are the sums over all leaves.
  waited finish(job const& j, team& all, failure_flag const& failed) {
    if (!is_on_) return waited::done;
    join_complete(j, all);
    return replicas_.finish(all, calls_->add, failed);
  }
  /// The sum of the losses of this run's micro-batches, `sum`, becomes that of the mini-batch, in
  /// the last run of a step.
  ///
  /// needs: partial: room for the levels' sums
  waited add_up_losses(job const& j, double& sum, double* partial, failure_flag const& failed) {
    join_leaf(
        j.leaf, j.leaves, [&](int level) { sum += partial[level]; },
        [&](int level) { partial[level] = sum; });
    return j.replicas > 1 && is_last_leaf(j) ? replicas_.add_up(sum, failed) : waited::done;
  }

 private:
  /// Joins the chunks whose gradients are complete, in descending order.
  void join_complete(job const& j, team& all) {
    for (; next_ >= 0 && left_[next_] == 0; --next_)
      if (d_->chunk[next_].rank == rank_) join(j, all, d_->chunk[next_]);
  }
  void join(job const& j, team& all, chunk_description const& c) {
    T* const own = reinterpret_cast<T*>(memory_ + c.gradients);
    long const n = c.summed_bytes() / long(sizeof(T));
    all.run([&](int part) {
      host::share const s = host::share_of(n, host::columns_step<T>, part, all.size());
      auto const level = [&](int k) {
        return reinterpret_cast<T*>(memory_ + d_->rank[rank_].leaf_sums +
                                    k * d_->rank[rank_].level_bytes + c.in_level) +
               s.begin;
      };
      std::size_t const bytes = sizeof(T) * std::size_t(s.size());
      if (j.samples == 0) std::memset(own + s.begin, 0, bytes);  // nothing has overwritten them
      join_leaf(
          j.leaf, j.leaves, [&](int k) { calls_->add(s.size(), own + s.begin, level(k)); },
          [&](int k) { std::memcpy(level(k), own + s.begin, bytes); });
    });
    if (j.replicas > 1 && is_last_leaf(j)) replicas_.give(own, n);
  }

  pipeline_description const* d_ = nullptr;
  backend_calls<T> const* calls_ = nullptr;
  int rank_ = 0;
  char* memory_ = nullptr;
  heap_array<int> left_;  // by chunk: actions of this run that add to its gradients
  int next_ = -1;         // the chunk to be joined next
  bool is_on_ = false;
  typename replica_sum_of<T, Transport>::type replicas_;
};

}  // namespace pp::detail
PIPE_OPTIMIZED_END
