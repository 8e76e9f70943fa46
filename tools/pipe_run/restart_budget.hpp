// SPDX-License-Identifier: BSL-1.0
//
// The rule by which a program that has failed is started again: when, and in how many processes.
#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

namespace launcher {

/// A start that follows a failure.
struct next_start {
  int processes = 1;
  double wait = 0;  ///< before it, in seconds
  int number = 0;   ///< of the restarts within the window, counted from 1; 0: the first with fewer
                    ///< processes
};

/// Restarts that are left. Times are in seconds, of a clock that the caller reads.
///
/// law: at most `most` restarts with one number of processes within any window; then the next of
///      the sizes follows, with a budget of its own; after the last one there is none
/// law: waits double with each restart in the window, from `first_wait` up to longest_wait
class restart_budget {
 public:
  static constexpr double longest_wait = 60;

  /// sizes: numbers of processes, in the order in which they are tried. window: 0: without end.
  restart_budget(std::vector<int> sizes, int most, double window, double first_wait)
      : sizes_(std::move(sizes)), most_(most), window_(window), first_wait_(first_wait) {}

  /// The start that follows a failure at `now`, which does not decrease.
  std::optional<next_start> after_failure(double now) {
    if (window_ > 0) std::erase_if(restarts_, [&](double at) { return at <= now - window_; });
    double const wait = wait_after(int(restarts_.size()));
    if (int(restarts_.size()) < most_) {
      restarts_.push_back(now);
      return next_start{sizes_[size_], wait, int(restarts_.size())};
    }
    if (size_ + 1 == sizes_.size()) return std::nullopt;
    restarts_.clear();
    return next_start{sizes_[++size_], wait, 0};
  }

 private:
  double wait_after(int restarts) const {
    double wait = first_wait_;
    for (int i = 0; i < restarts && wait < longest_wait; ++i) wait *= 2;
    return wait < longest_wait ? wait : longest_wait;
  }

  std::vector<int> sizes_;
  std::size_t size_ = 0;
  int most_;
  double window_, first_wait_;
  std::vector<double> restarts_;  // their times, with the present size and within the window
};

}  // namespace launcher
