// SPDX-License-Identifier: BSL-1.0
//
// The leaves of steps that overlap, as ranks begin and end them. A step is a tree of leaves, each a
// run of the schedule, and a rank goes from one to the next at once: its gradients are joined with
// those of the leaves before, so that the next one may overwrite them, and only the last leaf of a
// step is followed by an update.
#pragma once

#include <pipe/base/config.hpp>
#include <pipe/base/heap_array.hpp>
#include <pipe/runtime/actions.hpp>
#include <pipe/runtime/description.hpp>
#include <pipe/runtime/host/action_runner.hpp>
#include <pipe/runtime/host/flow_step.hpp>
#include <pipe/runtime/host/parameters.hpp>
#include <pipe/transport/waiting.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp::detail {

/// See above. Leaves have numbers from 1 in a segment of steps. A method that takes a rank is
/// called on its thread.
///
/// law: waits have no cycle: a rank waits for what others do in the same leaf, where its order was
///      proved, before any of them waits for its end
template <class T, class Transport>
class flow_leaves {
  using worker = rank_worker<T, Transport>;

 public:
  flow_leaves(pipeline_description const& d, Transport& transport,
              parameter_work<T, Transport>& parameters, heap_array<worker>& ranks)
      : d_(d), transport_(transport), parameters_(parameters), ranks_(ranks), begun_(d.ranks),
        done_(d.ranks), joined_(d.ranks) {}

  /// Begins a segment: no leaf has begun.
  void begin_segment() {
    for (progress& p : begun_) p.reset();
    for (progress& p : done_) p.reset();
    for (progress& p : joined_) p.reset();
  }
  /// Begins leaf `number` on rank r: its weights and sums are ready for all that hold its chunks.
  void begin(int r, flow_leaf const& l, int number) {
    ranks_[r].leaves.begin(l.of);
    begun_[r].publish(number);
  }
  /// Ends leaf `number`, of which rank r has run its actions: joins the gradients of its chunks
  /// when all holders have added theirs, and on the last stage's rank the losses. await(counter, n)
  /// waits for other ranks here.
  template <class Await>
  waited end(int r, flow_leaf const& l, int number, Await const& await) {
    if constexpr (!Transport::copies)
      l.for_each_missing(d_, [&](int h, int last) {
        if (d_.holder[h].rank == r)
          for (milestone m : {milestone::forward, milestone::input_gradient, milestone::release})
            transport_.publish(h, m, last);
      });
    done_[r].publish(number);
    waited all = waited::done;
    for (int h = 0; h < d_.holders(); ++h)
      if (d_.chunk[d_.holder[h].chunk].rank == r && all == waited::done)
        all = await(done_[d_.holder[h].rank], number);
    auto& leaves = ranks_[r].leaves;
    if (all == waited::done) all = leaves.finish();
    if (all == waited::done) all = parameters_.add_up_losses(r, l.of, leaves);
    if (all == waited::done) joined_[r].publish(number);
    return all;
  }
  /// Count the leaves that rank r has begun, and those whose gradients it has joined.
  progress& begun(int r) { return begun_[r]; }
  progress& joined(int r) { return joined_[r]; }

 private:
  pipeline_description const& d_;
  Transport& transport_;
  parameter_work<T, Transport>& parameters_;
  heap_array<worker>& ranks_;
  heap_array<progress> begun_, done_, joined_;  // by rank
};

}  // namespace pp::detail
PIPE_OPTIMIZED_END
