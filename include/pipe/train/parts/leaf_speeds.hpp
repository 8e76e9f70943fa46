// SPDX-License-Identifier: BSL-1.0
//
// Leaves by the speed of replicas: see SumBySpeed. All processes find the same shares, from the
// same times.
#pragma once

#include <pipe/base/error.hpp>
#include <pipe/base/heap_array.hpp>
#include <pipe/runtime/job.hpp>
#include <pipe/train/parts/trainer_processes.hpp>

namespace pp::detail {

/// The leaves of each replica for which the slowest one is done first: at least one, and at most
/// `most` of them. times: of a leaf, by replica, in any unit
///
/// needs: at least a leaf for each replica, and enough that may have `most`
/// law:   no other numbers within these bounds have a shorter longest_time
[[gnu::cold]] inline void share_by_time(heap_array<double> const& times, int leaves, int most,
                                        heap_array<int>& counts) {
  for (int& n : counts) n = 1;
  for (int left = leaves - int(counts.size()); left > 0; --left) {
    long next = -1;
    for (long r = 0; r < counts.size(); ++r)
      if (counts[r] < most &&
          (next < 0 || (counts[r] + 1) * times[r] < (counts[next] + 1) * times[next]))
        next = r;
    ++counts[next];
  }
}
/// The time of the slowest replica.
inline double longest_time(heap_array<double> const& times, heap_array<int> const& counts) {
  double longest = 0;
  for (long r = 0; r < counts.size(); ++r)
    if (double const t = counts[r] * times[r]; t > longest) longest = t;
  return longest;
}

/// The speeds of replicas: as the program states them, or as they are measured over `period` steps.
class leaf_speeds {
 public:
  /// Steps after which processes compare their times, and the least part of the time of a step that
  /// other shares must save.
  static constexpr int period = 16;
  static constexpr double least_gain = 0.05;

  /// Begins with the shares by stated speeds, or 0: none is stated, and they are measured.
  ///
  /// throws: error in all processes if a speed is stated in some of them only
  template <class Engine>
  [[gnu::cold]] void state(Engine& engine, double speed, int replica, int leaves, int most,
                           heap_array<int>& counts) {
    times_ = heap_array<double>(counts.size());
    shares_ = heap_array<int>(counts.size());
    bool const states = speed > 0;
    is_stated_ = least(engine, states) == 1;
    if (!is_stated_ && least(engine, !states) == 0)
      throw_error<error>({"runtime.speed: it is ", states ? "" : "not ",
                          "given here, and in another process it is ", states ? "not" : "",
                          ": give it in all, or in none"});
    if (!is_stated_) return;
    gather(engine, replica, 1e9 / speed);
    share_by_time(times_, leaves, most, counts);
  }
  /// Takes the time of a leaf that has run here.
  ///
  /// units: nanoseconds
  void note(long time) { sum_ += double(time), ++noted_; }
  /// Ends a step that has noted times; after `period` of them, changes the shares if that is worth
  /// it. All processes call it after the same steps.
  template <class Engine>
  void end_step(Engine& engine, int replica, int leaves, int most, heap_array<int>& counts) {
    if (is_stated_ || ++steps_ < period) return;
    gather(engine, replica, sum_ / noted_);
    steps_ = noted_ = 0, sum_ = 0;
    share_by_time(times_, leaves, most, shares_);
    if (longest_time(times_, shares_) > (1 - least_gain) * longest_time(times_, counts)) return;
    for (long r = 0; r < counts.size(); ++r) counts[r] = shares_[r];
  }

 private:
  /// Gives all processes the time of each replica: that of its slowest process.
  template <class Engine>
  [[gnu::cold]] void gather(Engine& engine, int replica, double time) {
    long const mine = time < 1 ? 1 : time < 1e15 ? long(time) : long(1e15);
    for (long r = 0; r < times_.size(); ++r)
      times_[r] = double(-least(engine, r == replica ? -mine : 0));
  }

  heap_array<double> times_;
  heap_array<int> shares_;
  bool is_stated_ = false;
  double sum_ = 0;
  int noted_ = 0, steps_ = 0;
};

}  // namespace pp::detail
