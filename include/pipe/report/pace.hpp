// SPDX-License-Identifier: BSL-1.0
//
// The time that a run has left, from the time between its last records.
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <chrono>
#include <cstdio>
#include <string>

namespace pp::detail {

/// The pace of a run: a mean of the time per step in which recent steps weigh more. The first
/// record of a run, which may be resumed, only starts the clock.
class run_pace {
 public:
  using clock = std::chrono::steady_clock;

  /// steps: of the whole run; 0 or less: not known
  explicit run_pace(long steps) : steps_(steps) {}

  /// A record of a step; steps may be missing between two records.
  void add(long step, clock::time_point now) {
    if (begun_ && step > step_) {
      double const mine = std::chrono::duration<double>(now - time_).count() / double(step - step_);
      // A plain mean of the first records, later one over about the last 50.
      if (seen_ < 50) ++seen_;
      seconds_ += (mine - seconds_) / double(seen_);
    }
    begun_ = true, step_ = step, time_ = now;
  }
  /// Seconds until the last step; negative if that is not known.
  double seconds_left() const {
    return steps_ <= 0 || seen_ == 0 ? -1 : step_ >= steps_ ? 0 : seconds_ * double(steps_ - step_);
  }

 private:
  long steps_, step_ = 0;
  clock::time_point time_{};
  bool begun_ = false;
  long seen_ = 0;
  double seconds_ = 0;  // per step
};

/// 83 -> "1:23", 5025 -> "1:23:45"
inline std::string readable_duration(double seconds) {
  long const s = seconds < 3e10 ? long(seconds + 0.5) : 30'000'000'000;
  char text[40];
  if (s >= 3600)
    std::snprintf(text, sizeof text, "%ld:%02ld:%02ld", s / 3600, s / 60 % 60, s % 60);
  else
    std::snprintf(text, sizeof text, "%ld:%02ld", s / 60, s % 60);
  return text;
}

}  // namespace pp::detail
