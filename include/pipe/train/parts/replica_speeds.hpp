// SPDX-License-Identifier: BSL-1.0
//
// Accumulations by the speed of replicas: see GradientAccumulationBySpeed. All processes find the
// same shares, from the same times.
#pragma once

#include <pipe/base/error.hpp>
#include <pipe/base/heap_array.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/runtime/job.hpp>
#include <pipe/train/parts/trainer_processes.hpp>

namespace pp::detail {

/// The numbers of accumulations by replica with which the slowest replica is done first, each from
/// 1 to `most`. times: of an accumulation, by replica, in any unit
///
/// needs: at least one accumulation for each replica, and at most `most` times the number of
///        replicas
/// law:   no other numbers within these bounds have a shorter longest_time
[[gnu::cold]] inline void share_by_time(heap_array<double> const& times, int accumulations,
                                        int most, heap_array<int>& counts) {
  for (int& n : counts) n = 1;
  for (int left = accumulations - int(counts.size()); left > 0; --left) {
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

/// The speeds of replicas: stated by the program, or measured over `period` steps.
class replica_speeds {
 public:
  /// The number of steps after which processes compare their times, and the least part of a step's
  /// time that new shares must save.
  static constexpr int period = 16;
  static constexpr double least_gain = 0.05;

  /// Begins with shares by stated speeds. speed 0: not stated, and speeds are measured.
  ///
  /// throws: error in all processes if a speed is stated for some replicas only
  template <class Engine>
  [[gnu::cold]] void state(Engine& engine, double speed, int replica, int accumulations, int most,
                           heap_array<int>& counts) {
    times_ = heap_array<double>(counts.size());
    shares_ = heap_array<int>(counts.size());
    gather(engine, replica, speed > 0 ? most_time / 1e6 / speed : 0);
    for (long r = 1; r < times_.size(); ++r)
      if ((times_[r] > 0) != (times_[0] > 0))
        throw_error<error>({"runtime.speed is given for replica ", times_[r] > 0 ? r : 0,
                            ", and not for replica ", times_[r] > 0 ? 0 : r,
                            ": give it in all processes, or in none"});
    is_stated_ = times_[0] > 0;
    if (is_stated_) share_by_time(times_, accumulations, most, counts);
  }
  /// Takes the time of an accumulation that this process has run. work: the part of its rows that
  /// are there, more than 0
  ///
  /// units: nanoseconds
  void note(long time, double work) { sum_ += double(time), noted_ += work; }
  /// Ends a step that has noted times; after `period` such steps, changes the shares if new shares
  /// save enough. All processes call it after the same steps.
  template <class Engine>
  void end_step(Engine& engine, int replica, int accumulations, int most, heap_array<int>& counts) {
    if (is_stated_ || ++steps_ < period) return;
    gather(engine, replica, sum_ / noted_ + 1);
    steps_ = 0, noted_ = sum_ = 0;
    share_by_time(times_, accumulations, most, shares_);
    if (longest_time(times_, shares_) > (1 - least_gain) * longest_time(times_, counts)) return;
    for (long r = 0; r < counts.size(); ++r) counts[r] = shares_[r];
  }

 private:
  static constexpr double most_time = 1e15;

  /// Gives all processes the time of each replica, which is that of its slowest process; 0:
  /// unknown.
  template <class Engine>
  [[gnu::cold]] void gather(Engine& engine, int replica, double time) {
    long const mine = long(time < most_time ? time : most_time);
    for (long r = 0; r < times_.size(); ++r)
      times_[r] = double(-least(engine, r == replica ? -mine : 0));
  }

  heap_array<double> times_;
  heap_array<int> shares_;
  bool is_stated_ = false;
  double sum_ = 0, noted_ = 0;  // times, and the work done in them
  int steps_ = 0;
};

}  // namespace pp::detail
