// SPDX-License-Identifier: BSL-1.0
//
// Time in which this process runs. Deadlines of waits for other processes, and the silence after
// which a process is lost, count this time only: a program that was suspended (Ctrl-Z, a debugger)
// has missed nothing when it resumes.
#pragma once

#include <shared_mutex>  // has the clocks and durations of <chrono> without its calendar

namespace pp::detail {

/// The sum of the times between looks at a clock. Of a time between two looks at most `longest`
/// counts: in the rest the process was stopped, or had no core.
class running_time {
 public:
  using clock = std::chrono::steady_clock;

  explicit running_time(std::chrono::nanoseconds longest = std::chrono::milliseconds(20))
      : longest_(longest) {}

  /// Looks at the clock. Returns the time since the last look, which is added to the total.
  std::chrono::nanoseconds look() {
    auto const now = clock::now();
    std::chrono::nanoseconds passed = now - before_;
    before_ = now;
    if (passed > longest_) passed = longest_;
    total_ += passed;
    return passed;
  }
  /// The time since the last look does not count.
  void skip() { before_ = clock::now(); }

  std::chrono::nanoseconds total() const { return total_; }
  /// Whether the total is beyond a deadline; 0 and no_deadline: there is none.
  ///
  /// law: milliseconds are compared, as milliseconds::max() has no nanoseconds
  bool is_beyond(std::chrono::milliseconds deadline) const {
    return deadline.count() > 0 && std::chrono::ceil<std::chrono::milliseconds>(total_) > deadline;
  }

 private:
  std::chrono::nanoseconds longest_, total_{};
  clock::time_point before_ = clock::now();
};

}  // namespace pp::detail
