// SPDX-License-Identifier: BSL-1.0
//
// The times of a run's actions by the clocks of the devices: pairs of events around each action,
// read after the run. The host's clock relates the clocks of several devices.
#pragma once

#include <cstddef>
#include <limits>
#include <shared_mutex>  // has the clocks of <chrono> without its calendar
#include <utility>
#include <vector>

#include <pipe/base/error.hpp>
#include <pipe/base/heap_array.hpp>
#include <pipe/runtime/cuda/rank_streams.cuh>
#include <pipe/runtime/cuda/resources.cuh>
#include <pipe/runtime/description.hpp>
#include <pipe/runtime/job.hpp>

namespace pp::cuda {

/// The times of the actions of a run.
///
/// units: nanoseconds from the start of the run
class run_times {
 public:
  /// wants: whether runs without a watcher record times as well
  ///
  /// needs: the streams outlive this object
  [[gnu::cold]] run_times(detail::pipeline_description const& d, rank_streams const& streams,
                          bool wants)
      : streams_(streams), wants_(wants), timelines_(d.ranks) {
    detail::local_devices const& local = streams.local();
    for (int r = local.first_rank(); r < local.end_rank(); ++r) {
      int const most = d.rank[r].most_actions();
      streams.make_current(r);
      if (wants) timelines_[r].marks.resize(std::size_t(most));
      timelines_[r].actions.reserve(std::size_t(most));
    }
    for (int k = local.first; k < local.first + local.count; ++k) {
      streams.make_current(local.all.first_rank(k));
      starts_.emplace_back();
    }
  }

  /// Forgets the run before.
  void begin(bool is_watched) {
    begin_ = std::chrono::steady_clock::now();
    is_on_ = wants_ || is_watched;
    is_read_ = true;
    for (rank_timeline& of_rank : timelines_) of_rank.actions.clear();
  }
  /// Whether the run records times.
  bool is_on() const { return is_on_; }
  /// Records the start of the run, behind the work on the stream of each device's first rank.
  ///
  /// law: with several devices the host waits for each device, to relate their clocks
  void start() {
    detail::local_devices const& local = streams_.local();
    long first = 0;
    for (int k = 0; k < local.count; ++k) {
      device_start& s = starts_[std::size_t(k)];
      check(cudaEventRecord(s.at, streams_.of(local.all.first_rank(local.first + k))),
            "record of an event");
      if (k == 0) began_ = std::chrono::steady_clock::now();
      if (local.count == 1) return;
      s.at.wait();
      long const now =
          std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
      if (k == 0) first = now;
      s.after_first = now - first;
    }
  }
  /// Calls run(), with events before and after the work that run() puts on the rank's stream.
  template <class Run>
  void record(int rank, schedules::action const& a, Run const& run) {
    rank_timeline& mine = timelines_[rank];
    std::size_t const at = mine.actions.size();
    cudaStream_t const on = streams_.of(rank);
    if (at == mine.marks.size()) mine.marks.emplace_back();
    check(cudaEventRecord(mine.marks[at].start, on), "record of an event");
    run();
    check(cudaEventRecord(mine.marks[at].end, streams_.of(rank)), "record of an event");
    mine.actions.push_back({a, 0, 0, 0, 0});
    is_read_ = false;
  }

  // ---- after the run ----

  /// The host's time at which the times of the run are 0, to some ten microseconds, as the device
  /// had no work before.
  std::chrono::steady_clock::time_point began() const { return began_; }
  /// Seconds since begin(), by the host's clock.
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  }
  /// The actions that a rank executed; none for a rank of another process.
  ///
  /// throws: error if the run recorded no times
  executed_action const* executed(int rank) {
    read();
    if (!is_on_)
      throw error(
          "executed(): the last run recorded no times; on a GPU, set settings.runtime.timeline");
    return timelines_[rank].actions.data();
  }
  int executed_count(int rank) const { return int(timelines_[rank].actions.size()); }

  /// The fraction of time in which the ranks' streams were idle, from the start of the run to the
  /// end of the last action. NaN without times.
  double bubble() {
    if (!is_on_) return std::numeric_limits<double>::quiet_NaN();
    read();
    long busy = 0, last = 0;
    for (rank_timeline const& of_rank : timelines_)
      for (executed_action const& e : of_rank.actions) {
        busy += e.end - e.start;
        last = e.end > last ? e.end : last;
      }
    int const ranks = streams_.local().end_rank() - streams_.root();
    return last > 0 ? 1 - double(busy) / (double(last) * ranks) : 0;
  }

 private:
  struct time_marks {
    event start{true}, end{true};
  };
  /// The executed actions of a rank in this run, and pairs of events around them, reused by later
  /// runs.
  struct rank_timeline {
    std::vector<executed_action> actions;
    std::vector<time_marks> marks;
  };
  struct device_start {
    event at{true};
    long after_first = 0;  // nanoseconds after the first device's start, by the host's clock
  };

  [[gnu::cold]] void read() {
    if (is_read_) return;
    is_read_ = true;
    for (int r = streams_.root(); r < streams_.local().end_rank(); ++r) {
      device_start const& s = starts_[std::size_t(streams_.local().number(r))];
      auto const since = [&](event const& e) {
        float ms = 0;
        check(cudaEventElapsedTime(&ms, s.at, e), "time between events");
        return s.after_first + long(double(ms) * 1e6);
      };
      rank_timeline& mine = timelines_[r];
      for (std::size_t i = 0; i < mine.actions.size(); ++i) {
        mine.actions[i].start = since(mine.marks[i].start);
        mine.actions[i].end = since(mine.marks[i].end);
      }
    }
  }

  rank_streams const& streams_;
  bool wants_;
  detail::heap_array<rank_timeline> timelines_;  // by rank
  std::vector<device_start> starts_;             // by device
  std::chrono::steady_clock::time_point begin_, began_;
  bool is_on_ = true, is_read_ = true;  // of the last run
};

}  // namespace pp::cuda
