// SPDX-License-Identifier: BSL-1.0
//
// The early part of a step: the actions that ranks run before the step before is judged. The first
// backward of the last stage waits for the outcome; other actions run as far as they do not depend
// on it.
#pragma once

#include <utility>

#include <pipe/base/config.hpp>
#include <pipe/base/heap_array.hpp>
#include <pipe/base/view.hpp>
#include <pipe/runtime/actions.hpp>
#include <pipe/runtime/description.hpp>
#include <pipe/runtime/host/overlap/flow_order.hpp>
#include <pipe/schedule/action.hpp>
#include <pipe/transport/transport.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp::detail {

/// The early part of a step: for each rank, the first actions of its order. It follows from the
/// order and the number of micro-batches alone.
///
/// law: the early part has no backward, and its actions wait only for actions of the early part or
///      of earlier steps. So each rank runs the early part to its end, and all ranks know what the
///      others send in it
class early_part {
 public:
  [[gnu::cold]] void assemble(pipeline_description const& d) {
    ends_ = heap_array<int>(d.ranks);
    forwards_ = heap_array<int>(d.holders());
  }
  /// Finds the early part of a step with `micro_batches` micro-batches. Free steps have none.
  void find(pipeline_description const& d, int micro_batches) {
    flow_order const order(d);
    if (order.is_free() || std::exchange(micro_batches_, micro_batches) == micro_batches) return;
    for (int& end : ends_) end = 0;
    for (int& count : forwards_) count = 0;
    for (bool goes_on = true; goes_on;) {
      goes_on = false;
      for (int r = 0; r < d.ranks; ++r)
        while (goes_on_from(d, order.actions_of(r), ends_[r])) ++ends_[r], goes_on = true;
    }
  }
  /// Whether the action at a position of rank r's order is in the early part.
  bool has(int r, long position) const { return position < ends_[r]; }
  /// The number of a chunk's forwards in the early part.
  ///
  /// needs: the chunk has one holder
  int forwards(pipeline_description const& d, int chunk) const {
    return forwards_[d.chunk[chunk].first_holder];
  }

 private:
  /// Whether the action at a position of an order is in the early part, or has no samples. Notes a
  /// forward of the early part.
  bool goes_on_from(pipeline_description const& d, view<action> const& order, int position) {
    if (position == order.size()) return false;
    action const& a = order[position];
    if (a.micro_batch >= micro_batches_) return true;
    if (makes_input_gradient(a.kind) || !has_needs_of(d, a)) return false;
    if (a.with_next && order[position + 1].micro_batch < micro_batches_ &&
        !has_needs_of(d, order[position + 1]))
      return false;
    if (a.kind == action_kind::forward)
      forwards_[d.holder_of(a.chunk, a.micro_batch)] = a.micro_batch + 1;
    return true;
  }
  bool has_needs_of(pipeline_description const& d, action const& a) const {
    bool has_all = true;
    auto const need = [&](int chunk, milestone m, int mb) {
      if (mb >= 0)
        has_all = has_all && m == milestone::forward && forwards_[d.holder_of(chunk, mb)] > mb;
    };
    for_each_need(d, a, need);
    // Sums of buffers are added to in the order of micro-batches: see sum_order.
    if (a.kind == action_kind::forward && d.has_buffers && d.chunk[a.chunk].holders > 1)
      need(a.chunk, milestone::forward, a.micro_batch - 1);
    return has_all;
  }

  int micro_batches_ = 0;
  heap_array<int> ends_;      // by rank: a position in the rank's order
  heap_array<int> forwards_;  // by holder: the micro-batch after the holder's last forward
};

}  // namespace pp::detail
PIPE_OPTIMIZED_END
