// SPDX-License-Identifier: BSL-1.0
//
// The records of executed actions where steps overlap. A rank keeps those of its last steps, and
// of the steps behind them that it has begun, in the memory that the plan has for them.
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
/// law: between two periods of a rank there are at most those of recorded_steps periods, and of as
///      many as its actions are ahead
template <class T, class Transport>
class flow_records {
 public:
  /// needs: the context lives as long
  explicit flow_records(rank_context<T, Transport>& context)
      : context_(context), runner_(context.runner) {}

  /// Begins a call of train() with a step, and its time.
  void begin(long first) {
    first_ = first;
    for (auto& r : context_.ranks) r.count = 0;
    runner_.begin();
  }
  /// A step's or a version's number.
  int number(long n) const { return int(n - first_); }
  /// Rank r has updated in step n, since `start`; micro_batch: the last one of the step.
  void add_update(int r, int chunk, int micro_batch, long n, long start) {
    action const what{action_kind::update, chunk, micro_batch, number(n + 1)};
    runner_.record(r, {what, number(n), start, runner_.now(), 0});
  }
  /// Keeps those of rank r's last steps before step n, and of step n and later ones.
  void keep(int r, long n) {
    int const first = number(n - recorded_steps);
    keep_if(r, [&](executed_action const& a) { return a.step >= first; });
  }
  /// Removes what rank r has done with weights behind a version, and to make them.
  void take_back(int r, long version) {
    keep_if(r, [&](executed_action const& a) { return a.what.version <= number(version); });
  }
  /// Ends a call of train() before step n. The times of all ranks here count from the first action
  /// kept.
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
