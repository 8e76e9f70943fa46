// SPDX-License-Identifier: BSL-1.0
//
// The watch of a run by the calling thread: a run without progress fails, and a run that takes much
// longer than earlier runs is reported.
#pragma once

#include <exception>
#include <shared_mutex>  // has the durations of <chrono> without its calendar
#include <string>
#include <string_view>

#include <pipe/base/error.hpp>
#include <pipe/base/real_text.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/runtime/host/core/activity.hpp>
#include <pipe/runtime/job.hpp>
#include <pipe/transport/transport.hpp>
#include <pipe/transport/waiting.hpp>

namespace pp::detail {

/// "12 s", or "1500 ms".
[[gnu::cold]] inline std::string time_in_words(std::chrono::milliseconds t) {
  long const ms = long(t.count());
  bool const whole = ms % 1000 == 0;
  return sentence({whole ? ms / 1000 : ms, whole ? " s" : " ms"}).begin();
}

/// One line for each rank of a process: the rank's activity, and for how long. Ranks: workers with
/// an activity `doing`. at: now, in nanoseconds from the start of the run.
template <class Ranks>
[[gnu::cold]] std::string table_of_ranks(Ranks const& ranks, process_place const& place, long at) {
  std::string text;
  for (int r = place.first_rank; r < place.first_rank + place.ranks; ++r)
    text += sentence({"\nrank ", r, ": ", std::string_view(ranks[r].doing.text()), ", for ",
                      ranks[r].doing.seconds(at), " s"})
                .begin();
  return text;
}

/// The report of a run that makes no progress: a line that names the first rank that is stuck in a
/// kernel, if any, and the table of ranks.
template <class Ranks>
[[gnu::cold]] std::string hang_report(Ranks const& ranks, process_place const& place,
                                      std::chrono::milliseconds deadline, long at) {
  int stuck = place.first_rank;
  while (place.has(stuck) && !ranks[stuck].doing.is_running()) ++stuck;
  std::string text = "timed out after " + time_in_words(deadline) + " waiting for ";
  if (place.has(stuck))
    text +=
        sentence({"rank ", stuck, " (", std::string_view(ranks[stuck].doing.text()), ")"}).begin();
  else
    text += "any rank to make progress";
  return text + table_of_ranks(ranks, place, at);
}

/// Durations of the last runs of one kind; with Lengths each as if all planned rows were there.
class recent_times {
 public:
  static constexpr int most = 31, enough = 7;

  void add(double seconds) { times_[count_++ % most] = seconds; }
  /// The median of the durations, in seconds; 0 before there are `enough` of them.
  [[gnu::cold]] double median() const {
    int const n = count_ < most ? int(count_) : most;
    if (n < enough) return 0;
    double sorted[most];
    for (int i = 0; i < n; ++i) {
      int at = i;
      for (; at > 0 && sorted[at - 1] > times_[i]; --at) sorted[at] = sorted[at - 1];
      sorted[at] = times_[i];
    }
    return sorted[n / 2];
  }

 private:
  double times_[most]{};
  long count_ = 0;
};

/// The watch of the ranks of this process. Time is counted in the intervals for which the watching
/// thread sleeps, so that the time of a stopped process or a suspended machine does not count,
/// except for one interval at most. Intervals are long while ranks make progress, and short while
/// they do not.
///
/// law: for a run that is neither slow nor without progress, only the activities of ranks are read
class run_watch {
  using milliseconds = std::chrono::milliseconds;

 public:
  explicit run_watch(executor_settings const& s)
      : deadline_(s.waiting.deadline), on_timeout_(s.on_timeout), slow_(s.slow) {
    // An interval is a sixteenth of the shorter time: a missed deadline, or a slow run, is seen at
    // most one interval late.
    milliseconds const longest(1000), shortest(1);
    interval_ = longest;
    if (deadline_.count() > 0 && deadline_ < 16 * longest) interval_ = deadline_ / 16;
    if (reports_slow_runs() && slow_.at_least < 16 * longest && slow_.at_least / 16 < interval_)
      interval_ = slow_.at_least / 16;
    if (interval_ < shortest) interval_ = shortest;
  }

  /// Waits until a counter has reached `goal`, and returns null. Returns earlier, with the reason,
  /// if no rank has made progress for the deadline, or if a callback throws. If no rank here runs a
  /// kernel, two intervals are added to the deadline, so that the process that keeps the others
  /// waiting reports first. work: see part_of_rows. now(): nanoseconds from the start of the run
  template <class Ranks, class Now>
  std::exception_ptr wait(progress& finished, int goal, Ranks const& ranks,
                          process_place const& place, job const& j, double work, Now const& now) {
    bool const has_deadline = deadline_.count() > 0;
    bool is_slow_told = !reports_slow_runs();
    if (!has_deadline && is_slow_told) return finished.wait(goal, {{}, no_deadline}), nullptr;
    milliseconds running{}, still{};
    for (long seen = -1;;) {
      milliseconds const interval =
          still.count() > 0 && interval_ > short_interval ? short_interval : interval_;
      if (finished.wait(goal, {{}, interval}) == waited::done) return nullptr;
      running += interval;
      long changes = 0;
      bool runs = false;
      for (auto const& r : ranks) changes += r.doing.changes(), runs |= r.doing.is_running();
      still = changes == seen ? still + interval : milliseconds{};
      seen = changes;
      try {
        if (has_deadline && still >= deadline_ + (runs ? milliseconds{} : 2 * interval_)) {
          std::string const text = hang_report(ranks, place, deadline_, now());
          if (on_timeout_ != nullptr) on_timeout_(text);
          throw rank_error(text);
        }
        if (is_slow_told || running < slow_.at_least) continue;
        double const median = times_[int(j.what)].median() * work;
        if (median <= 0 || double(running.count()) * 1e-3 < slow_.factor * median) continue;
        is_slow_told = true;
        slow_.report(slow_report(ranks, place, j, running, median, now()));
      } catch (...) {
        return std::current_exception();
      }
    }
  }
  /// Notes the duration of a run that has ended well. A run without samples is not counted.
  void note(job const& j, double seconds, double work) {
    if (j.batch.samples > 0) times_[int(j.what)].add(seconds / work);
  }

 private:
  static constexpr milliseconds short_interval{20};

  bool reports_slow_runs() const { return slow_.report != nullptr && slow_.factor > 0; }
  template <class Ranks>
  [[gnu::cold]] static std::string slow_report(Ranks const& ranks, process_place const& place,
                                               job const& j, milliseconds running, double median,
                                               long at) {
    static constexpr char const* what[] = {"the run of step ", "an evaluation before step ",
                                           "an inference before step "};
    std::string text = sentence({what[int(j.what)], j.step, " has not ended after ",
                                 std::string_view(time_in_words(running)),
                                 ": the median of those before is ", real_text(median, 3).view(),
                                 " s", j.batch.segments == nullptr ? "" : " for as many rows"})
                           .begin();
    return text += table_of_ranks(ranks, place, at);
  }

  std::chrono::milliseconds deadline_;
  void (*on_timeout_)(std::string_view);
  slow_runs slow_;
  milliseconds interval_{};
  recent_times times_[3];  // by job::kind
};

}  // namespace pp::detail
