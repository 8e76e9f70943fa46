// SPDX-License-Identifier: BSL-1.0
//
// The records of executed actions where steps overlap. In the memory that the plan has for them, a
// rank keeps the records of its last steps, and of later steps that it has begun.
#pragma once

#include <pipe/base/config.hpp>
#include <pipe/runtime/host/core/action_runner.hpp>
#include <pipe/runtime/host/core/rank_context.hpp>
#include <pipe/runtime/job.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp::detail {

/// The records of the ranks of this process. They number steps and versions from the first step of
/// a call of train(): see number().
///
/// law: between two periods a rank has at most the records of recorded_steps periods, and of one
///      more for each step by which its actions are ahead
template <class T, class Transport>
class flow_records {
 public:
  /// needs: the owner lives as long as this object
  explicit flow_records(rank_context<T, Transport>& owner)
      : context_(owner), runner_(owner.runner) {}

  /// Begins a call of train() with step `first`, and its time.
  void begin(long first) {
    first_ = first;
    for (auto& r : context_.ranks) r.count = 0;
    runner_.begin();
  }
  /// The number of a step or a version in records.
  int number(long n) const { return int(n - first_); }
  /// Records that rank r has updated in step n, from `start` until now. micro_batch: the last of
  /// the step
  void add_update(int r, int chunk, int micro_batch, long n, long start) {
    action const what{action_kind::update, chunk, micro_batch, number(n + 1)};
    runner_.record(r, {what, number(n), start, runner_.now(), 0});
  }
  /// Keeps the records of rank r's last recorded_steps steps before step n, of step n, and of later
  /// steps.
  void keep(int r, long n) {
    int const first = number(n - recorded_steps);
    keep_if(r, [&](executed_action const& a) { return a.step >= first; });
  }
  /// Removes the records of rank r's actions that read a later version than `version`, and of
  /// updates that made one.
  void take_back(int r, long version) {
    keep_if(r, [&](executed_action const& a) { return a.what.version <= number(version); });
  }
  /// Ends a call of train() before step n. From then on the times of all ranks here count from the
  /// first action that is kept.
  [[gnu::cold]] void end(long n) {
    long first = runner_.now();
    context_.for_each_rank([&](int r) {
      keep(r, n);
      if (context_.ranks[r].count > 0 && runner_.executed(r)->start < first)
        first = runner_.executed(r)->start;
    });
    context_.for_each_rank([&](int r) {
      executed_action* const all = runner_.executed(r);
      for (int i = 0; i < context_.ranks[r].count; ++i) all[i].start -= first, all[i].end -= first;
    });
    runner_.begin_later(first);
  }

 private:
  template <class Test>
  void keep_if(int r, Test const& is_kept) {
    executed_action* const all = runner_.executed(r);
    int& count = context_.ranks[r].count;
    int kept = 0;
    for (int i = 0; i < count; ++i)
      if (is_kept(all[i])) all[kept++] = all[i];
    count = kept;
  }

  rank_context<T, Transport>& context_;
  action_runner<T, Transport>& runner_;
  long first_ = 0;
};

}  // namespace pp::detail
PIPE_OPTIMIZED_END
