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
#include <pipe/runtime/host/overlap/flow_step.hpp>
#include <pipe/runtime/host/core/rank_context.hpp>
#include <pipe/transport/waiting.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp::detail {

/// The leaves of the ranks of this process. Leaves have numbers from 1 in a segment of steps. A
/// method that takes a rank is called on that rank's thread.
///
/// law: waits have no cycle: a rank waits for what others do in the same leaf, where its order was
///      proved, before any of them waits for its end
template <class T, class Transport>
class flow_leaves {
 public:
  explicit flow_leaves(rank_context<T, Transport>& context)
      : context_(context), d_(context.d), begun_(d_.ranks), done_(d_.ranks) {}

  /// Begins a segment: no leaf has begun.
  void begin_segment() {
    for (progress& p : begun_) p.reset();
    for (progress& p : done_) p.reset();
  }
  /// Begins leaf `number` on rank r: its weights and sums are ready for all that hold its chunks.
  void begin(int r, flow_leaf const& l, int number) {
    context_.ranks[r].leaves.begin(l.of);
    begun_[r].publish(number);
  }
  /// Ends the actions of leaf `number` on rank r, and waits until all that hold the rank's chunks
  /// have ended theirs. await(counter, n) waits for other ranks here.
  template <class Await>
  waited await_holders(int r, flow_leaf const& l, int number, Await const& await) {
    if constexpr (!Transport::copies)
      l.for_each_missing(d_, [&](int h, int last) {
        if (d_.holder[h].rank == r)
          for (milestone m : {milestone::forward, milestone::input_gradient, milestone::release})
            context_.transport.publish(h, m, last);
      });
    done_[r].publish(number);
    waited all = waited::done;
    for (int h = 0; h < d_.holders(); ++h)
      if (d_.chunk[d_.holder[h].chunk].rank == r && all == waited::done)
        all = await(done_[d_.holder[h].rank], number);
    return all;
  }
  /// Counts the leaves that rank r has begun.
  progress& begun(int r) { return begun_[r]; }

 private:
  rank_context<T, Transport>& context_;
  pipeline_description const& d_;
  heap_array<progress> begun_, done_;  // by rank
};

}  // namespace pp::detail
PIPE_OPTIMIZED_END
