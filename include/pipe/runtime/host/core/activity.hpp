// SPDX-License-Identifier: BSL-1.0
//
// The current activity of a rank, for the report of a run that makes no progress or has lost a
// process. The rank's thread writes the activity, other threads read it.
#pragma once

#include <atomic>
#include <string>
#include <string_view>

#include <pipe/base/config.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/schedule/action.hpp>
#include <pipe/transport/transport.hpp>

namespace pp::detail {

/// The activity of a rank and the time when it began. Fields are separate relaxed atomics: a report
/// may combine two adjacent states, and recording costs only plain stores.
///
/// law: every change increments changes(); a rank makes progress exactly if changes() grows
class activity {
 public:
  /// waits: for another chunk. runs: an action's programs. adds: gradients of other replicas.
  /// meets: at a barrier. shares: a transfer that is no boundary value. updates: from
  /// step_op::update on.
  enum class kind : int { nothing, waits, sends, receives, runs, adds, meets, shares, updates };

  // ---- called by the rank's thread; times in nanoseconds from the start of the run ----

  /// Sets the action to which the following changes belong.
  void begin(action const& a) {
    set(action_, int(a.kind));
    set(chunk_, a.chunk);
    set(micro_batch_, a.micro_batch);
  }
  /// Sets the kind of activity. `of`: the awaited chunk, the peer of a send or receive, or the
  /// layer that runs.
  void change(kind k, int of, long now) {
    set(kind_, int(k));
    set(of_, of);
    since_.store(now, std::memory_order_relaxed);
    moved();
  }
  /// A transfer between this rank and another rank, other than the values of actions.
  void share(transfer const& x, int rank, long now) {
    if (x.from_rank != x.to_rank && (rank == x.from_rank || rank == x.to_rank))
      change(kind::shares, rank == x.to_rank ? x.from_rank : x.to_rank, now);
  }
  /// The next layer of the running action: progress, though the kind of activity stays.
  void run_layer(int layer) {
    set(kind_, int(kind::runs));
    set(of_, layer);
    moved();
  }

  // ---- called by any thread ----

  /// The number of changes since construction; equal readings some time apart mean no progress.
  long changes() const { return changes_.load(std::memory_order_relaxed); }
  /// Whether the rank executes an action's programs, rather than waits or transfers.
  bool is_running() const { return get(kind_) == int(kind::runs); }

  /// The activity in words: "F of chunk 2, micro-batch 3, in layer 4".
  [[gnu::cold]] std::string text() const {
    auto const what = [this](char const* how, int number) {
      return std::string(sentence({short_name(action_kind(get(action_))), " of chunk ", get(chunk_),
                                   ", micro-batch ", get(micro_batch_), how, number})
                             .begin());
    };
    switch (kind(get(kind_))) {
      case kind::nothing: return "idle";
      case kind::waits: return what(", waiting for chunk ", get(of_));
      case kind::sends: return what(", being sent to rank ", get(of_));
      case kind::receives: return what(", being received from rank ", get(of_));
      case kind::runs: return what(", in layer ", get(of_));
      case kind::adds: return "adding up gradients with the other replicas";
      case kind::meets: return "waiting for the other ranks to finish";
      case kind::shares:
        return sentence({"exchanging losses, norms or shared parameters with rank ", get(of_)})
            .begin();
      case kind::updates: return "in the optimizer's update";
    }
    return {};
  }
  /// Seconds since the activity began, up to `now`.
  long seconds(long now) const {
    return (now - since_.load(std::memory_order_relaxed)) / 1'000'000'000;
  }

 private:
  static void set(std::atomic<int>& to, int value) { to.store(value, std::memory_order_relaxed); }
  static int get(std::atomic<int> const& from) { return from.load(std::memory_order_relaxed); }
  /// A load and a store, not an addition in one: only the rank's thread writes.
  void moved() { changes_.store(changes() + 1, std::memory_order_relaxed); }

  std::atomic<int> kind_{0}, action_{0}, chunk_{0}, micro_batch_{0}, of_{0};
  std::atomic<long> since_{0}, changes_{0};
};

/// The activities of the ranks of a process, in one line: "rank 2: idle; rank 3: idle".
template <class Ranks>
[[gnu::cold]] std::string activities(Ranks const& ranks, process_place const& place) {
  std::string text;
  for (int r = place.first_rank; r < place.first_rank + place.ranks; ++r)
    text += sentence({text.empty() ? "rank " : "; rank ", r, ": ",
                      std::string_view(ranks[r].doing.text())})
                .begin();
  return text;
}

}  // namespace pp::detail
