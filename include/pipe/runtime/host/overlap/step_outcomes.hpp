// SPDX-License-Identifier: BSL-1.0
//
// The outcomes of steps that overlap, in one process, in their order.
#pragma once

#include <atomic>

#include <pipe/base/config.hpp>
#include <pipe/transport/waiting.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp::detail {

/// The outcomes of the steps of a segment. The first thread that claims a step judges it, and other
/// threads wait for the outcome. Steps have numbers from 0; the segment ends with the first step
/// that is not right.
class step_outcomes {
 public:
  /// Begins a segment.
  void reset() { judged_.reset(), claimed_.store(0), right_.store(0); }
  /// The number of right steps before the first step that is not right, or not judged.
  int right() const { return right_.load(std::memory_order_acquire); }
  /// Whether the caller is the thread that has to judge a step.
  ///
  /// needs: all steps before it are judged
  bool claim(int step) { return claimed_.compare_exchange_strong(step, step + 1); }
  /// Publishes the outcome of a step. What the caller has written before is visible to threads that
  /// see the outcome.
  void publish(int step, bool is_right) {
    if (is_right) right_.store(step + 1, std::memory_order_release);
    judged_.publish(step + 1);
  }
  /// Waits for the outcome of a step.
  waited await(int step, patience const& limits, failure_flag const& failed) {
    return judged_.wait(step + 1, limits, failed);
  }

 private:
  progress judged_;
  std::atomic<int> claimed_{0}, right_{0};
};

}  // namespace pp::detail
PIPE_OPTIMIZED_END
