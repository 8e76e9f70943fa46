// SPDX-License-Identifier: BSL-1.0
//
// The weights of ranks where steps overlap: the version that an action reads and its place, and
// updates, which can be taken back.
#pragma once

#include <utility>

#include <pipe/base/config.hpp>
#include <pipe/base/heap_array.hpp>
#include <pipe/runtime/host/core/rank_context.hpp>
#include <pipe/runtime/host/core/step_operations.hpp>
#include <pipe/runtime/host/overlap/flow_order.hpp>
#include <pipe/runtime/job.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp::detail {

/// The versions of weights of the ranks of this process. A version has the number of the first step
/// that reads it. A method that takes a rank is called on that rank's thread.
template <class T, class Transport>
class flow_weights {
  using version_state = copies_state::version;

 public:
  /// needs: owner and order live as long as this object
  flow_weights(rank_context<T, Transport>& owner, flow_order const& order)
      : context_(owner), d_(owner.d), order_(order), ranks_(d_.ranks) {}

  /// Begins a call of train() with step `first`, whose version is the newest, on the calling
  /// thread.
  void begin(long first) {
    copies_state& copies = context_.copies;
    versions().begin_runs();
    newest_at_first_ = first;
    for (state& r : ranks_) r.updated = r.averaged = first;
    if (copies.versions == version_state::unknown) copies.oldest_version = first;
    if (copies.is_behind() || copies.versions != version_state::known)
      context_.each_rank([&](int r) {
        job const none;
        barrier_meeting meeting(context_, r, none);
        if (copies.is_behind()) renew_copies(context_, r, none, meeting);
        if (copies.versions == version_state::unknown)
          order_.for_chunks_of(r, [&](int c) { versions().spread(d_.chunk[c]); });
        else if (copies.versions == version_state::written)
          context_.parameters.complete_versions(r, context_.ranks[r].threads);
      });
    copies.versions = version_state::known;
    copies.was_written = copies.was_updated = false;
  }
  /// Ends the call of train(): the newest version of rank r goes to slot 0, where other runs read.
  void end(int r) {
    order_.for_chunks_of(r, [&](int c) { versions().bring_newest_forward(d_.chunk[c]); });
  }

  /// The newest version of rank r.
  long newest(int r) const { return ranks_[r].updated; }
  /// The version that an action of rank r in period n reads, for its record.
  long version_of(int r, action const& a, long n) const {
    return order_.version_of(r, a, n, ranks_[r].updated, context_.copies.oldest_version);
  }
  /// The offset of the weights that an action of rank r in period n reads, in bytes from slot 0. If
  /// the rank predicts weights, a forward of a later step reads the prediction for its backward.
  long shift_for(int r, action const& a, long n, long step) {
    return d_.chunk[a.chunk].shift_of(slot_for(r, a, n, step));
  }

  /// Begins rank r's update in step n, in the slot of a version that no micro-batch in flight
  /// reads; end_update() ends the update.
  void begin_update(int r, long n) {
    order_.for_chunks_of(r, [&](int c) { versions().begin(d_.chunk[c], slot_of(c, n + 1)); });
  }
  void end_update(int r, long n) {
    // Confirmed steps need no shared means: all micro-batches of a step read the same version.
    // Shared means could not be taken back.
    if (d_.has_buffers && order_.is_free())
      order_.for_chunks_of(r, [&](int c) { versions().share_means(d_.chunk[c]); });
    ranks_[r].updated = n + 1;
  }
  /// Takes rank r's last update back, unless the rank's newest version is `to`. Returns whether an
  /// update was taken back.
  bool take_back(int r, long to) {
    if (ranks_[r].updated <= to) return false;
    order_.for_chunks_of(r, [&](int c) { versions().take_back(d_.chunk[c]); });
    ranks_[r].updated = to;
    return true;
  }
  /// Whether rank r has yet to update the averages of parameters after step n, which is confirmed.
  bool takes_average(int r, long n) {
    return d_.averages() && std::exchange(ranks_[r].averaged, n + 1) <= n;
  }

 private:
  /// The first steps in which a rank has not updated its weights, or their averages. Used by the
  /// rank's own thread, and by the calling thread between segments.
  struct alignas(64) state {
    long updated = 0, averaged = 0;
  };

  weight_versions<T>& versions() { return context_.parameters.versions(); }
  /// The slot of a version of a chunk's weights. The version that was newest at the beginning is in
  /// slot 0; older versions, or copies of it, are in the last slots: see bring_newest_forward() and
  /// spread().
  int slot_of(int chunk, long version) const {
    long const slots = d_.chunk[chunk].versions.slots, n = (version - newest_at_first_) % slots;
    return int(n < 0 ? n + slots : n);
  }
  int slot_for(int r, action const& a, long n, long step) {
    if (!d_.rank[r].predicts) return slot_of(a.chunk, n + a.version);
    bool const is_predicted =
        a.kind == action_kind::forward && step > n &&
        context_.parameters.predict(d_.chunk[a.chunk], context_.ranks[r].threads, step - n);
    return slot_of(a.chunk, ranks_[r].updated - is_predicted);
  }

  rank_context<T, Transport>& context_;
  pipeline_description const& d_;
  flow_order const& order_;
  heap_array<state> ranks_;
  long newest_at_first_ = 0;  // the version that was in slot 0 at the beginning
};

}  // namespace pp::detail
PIPE_OPTIMIZED_END
