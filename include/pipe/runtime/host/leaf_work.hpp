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

/// A part of a chunk's gradients and sums that is joined at once: a bucket of what replicas
/// exchange.
///
/// units: bytes from the start of the chunk's gradients
struct leaf_piece {
  int chunk = 0;
  long begin = 0, end = 0;
  /// The last launch that writes to it, by set of programs: `keeping`, `dropping`.
  int launch[2]{-1, -1};
};

/// The pieces of a rank's chunks, in the order in which backward completes them: the last chunk
/// first, and each from its end. The order does not depend on a run, as all replicas exchange
/// pieces in the same one.
[[gnu::cold]] inline heap_array<leaf_piece> pieces_of(pipeline_description const& d, int rank) {
  auto const count_in = [](chunk_description const& c) {
    return (c.summed_bytes() + most_leaf_bucket - 1) / most_leaf_bucket;
  };
  long count = 0;
  for (int c = 0; c < d.chunks; ++c)
    if (d.chunk[c].rank == rank) count += count_in(d.chunk[c]);
  heap_array<leaf_piece> pieces(count);
  leaf_piece* next = pieces.begin();
  for (int c = d.chunks - 1; c >= 0; --c) {
    chunk_description const& chunk = d.chunk[c];
    if (chunk.rank != rank) continue;
    leaf_piece* const first = next;
    for (long k = count_in(chunk) - 1; k >= 0; --k, ++next) {
      long const end = (k + 1) * most_leaf_bucket;
      *next = {c, k * most_leaf_bucket, end < chunk.summed_bytes() ? end : chunk.summed_bytes()};
    }
    for (program_set const* set : {&chunk.keeping, &chunk.dropping}) {
      program_view const& view = set->weight_program();
      for (int l = 0; l < view.count; ++l)
        for (int k = 0; k < view.launches[l].count; ++k) {
          placed_operand const& o = view.operands[view.launches[l].first + k];
          bool const is_sum = o.at.where == region::buffer_sums;
          if (o.elements == 0 || (!is_sum && o.at.where != region::parameter_gradients)) continue;
          long const begin = o.at.offset + (is_sum ? chunk.sums - chunk.gradients : 0);
          // An element has at most eight bytes.
          for (leaf_piece* p = first; p < next; ++p)
            if (begin < p->end && begin + 8 * o.elements > p->begin)
              p->launch[set == &chunk.dropping] = l;
        }
    }
  }
  return pieces;
}

/// The leaves of one rank. Gradients are joined piece by piece as the last action of a run that
/// writes to a chunk's completes them, so that replicas exchange them while the rank goes on.
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
    if (d.leaves == 1 && place.replicas == 1) return;
    rank_description const& mine = d.rank[rank];
    left_ = heap_array<int>(d.chunks);
    pieces_ = pieces_of(d, rank);
    replicas_.assemble(transport, place, rank, memory + mine.received_leaves,
                       mine.received_leaf_bytes, int(pieces_.size()));
  }

  /// Begins a run: counts the actions after which a chunk's gradients are complete.
  void begin(job const& j) {
    is_on_ = j.what == job::kind::train && has_leaves(j);
    if (!is_on_) return;
    // Other holders add to a chunk until the end.
    for (int c = 0; c < d_->chunks; ++c) left_[c] = d_->chunk[c].holders > 1;
    rank_description const& mine = d_->rank[rank_];
    for (action const* a = mine.training; a < mine.training + mine.training_count; ++a)
      if (makes_weight_gradient(a->kind) && samples_in(*d_, j, a->micro_batch) > 0)
        ++left_[a->chunk];
    next_ = 0;
    replicas_.begin();
  }
  /// Goes on after a launch of a program that completes gradients, or after another one.
  void after_launch(job const& j, team& all, int chunk, program_set const& set,
                    program_view const& view, int launch) {
    if (!is_on_ || left_[chunk] != 1 || &view != &set.weight_program()) return;
    int const which = &set == &d_->chunk[chunk].dropping;
    join_while(j, all,
               [&](leaf_piece const& p) { return p.chunk == chunk && p.launch[which] <= launch; });
    go_on(j, all);
  }
  /// Goes on after an action.
  void after(job const& j, team& all, action const& a) {
    if (!is_on_) return;
    if (makes_weight_gradient(a.kind)) --left_[a.chunk];
    join_complete(j, all);
    go_on(j, all);
  }
  /// Ends the run's actions: in the last run of a step, gradients are the sums over all leaves.
  ///
  /// needs: all holders of the rank's chunks are done
  waited finish(job const& j, team& all, failure_flag const& failed) {
    if (!is_on_) return waited::done;
    for (int& n : left_) n = 0;
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
    return exchanges(j) ? replicas_.add_up(sum, failed) : waited::done;
  }

 private:
  static bool exchanges(job const& j) { return j.replicas > 1 && is_last_leaf(j); }
  void go_on(job const& j, team& all) {
    if (exchanges(j)) replicas_.advance(all, calls_->add);
  }
  /// Joins the next pieces, as long as they are complete.
  template <class Complete>
  void join_while(job const& j, team& all, Complete const& is_complete) {
    for (; next_ < pieces_.size() && is_complete(pieces_[next_]); ++next_)
      join(j, all, pieces_[next_]);
  }
  void join_complete(job const& j, team& all) {
    join_while(j, all, [&](leaf_piece const& p) { return left_[p.chunk] == 0; });
  }
  /// Joins a piece with the partial sums of the leaves before this one, and gives it to the
  /// replicas if this is the last.
  void join(job const& j, team& all, leaf_piece const& p) {
    chunk_description const& c = d_->chunk[p.chunk];
    rank_description const& mine = d_->rank[rank_];
    T* const own = reinterpret_cast<T*>(memory_ + c.gradients + p.begin);
    long const n = (p.end - p.begin) / long(sizeof(T));
    all.run([&](int part) {
      host::share const s = host::share_of(n, host::columns_step<T>, part, all.size());
      auto const level = [&](int k) {
        return reinterpret_cast<T*>(memory_ + mine.leaf_sums + k * mine.level_bytes + c.in_level +
                                    p.begin) +
               s.begin;
      };
      std::size_t const bytes = sizeof(T) * std::size_t(s.size());
      if (j.samples == 0) std::memset(own + s.begin, 0, bytes);  // nothing has overwritten them
      join_leaf(
          j.leaf, j.leaves, [&](int k) { calls_->add(s.size(), own + s.begin, level(k)); },
          [&](int k) { std::memcpy(level(k), own + s.begin, bytes); });
    });
    if (exchanges(j)) replicas_.give(own, n);
  }

  pipeline_description const* d_ = nullptr;
  backend_calls<T> const* calls_ = nullptr;
  int rank_ = 0;
  char* memory_ = nullptr;
  heap_array<leaf_piece> pieces_;
  heap_array<int> left_;  // by chunk: actions of this run that still add to its gradients
  long next_ = 0;         // the piece to be joined next
  bool is_on_ = false;
  typename replica_sum_of<T, Transport>::type replicas_;
};

}  // namespace pp::detail
PIPE_OPTIMIZED_END
