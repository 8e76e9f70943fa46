// SPDX-License-Identifier: BSL-1.0
//
// The steps in progress where steps overlap, on the calling thread: mini-batches are taken while
// there is room, and results are shown in order.
#pragma once

#include <exception>
#include <shared_mutex>  // has the clocks of <chrono> without its calendar

#include <pipe/base/config.hpp>
#include <pipe/base/heap_array.hpp>
#include <pipe/runtime/host/overlap/flow_step.hpp>
#include <pipe/runtime/job.hpp>
#include <pipe/schedule/placement.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp::detail {

/// The ring of the steps in progress. Steps are counted over the life of a trainer, from 0.
///
/// law: a result is shown only once as many steps are taken as may be in progress, or all that
///      there are. So the number of steps after `done` ends the training does not depend on time
class flow_steps {
 public:
  /// most: the most steps in progress
  [[gnu::cold]] flow_steps(pipeline_description const& d, own_accumulations const& own, int most)
      : d_(d), own_(own), most_(most), steps_(most + 1) {
    for (int c = 0; c < d.chunks; ++c) pairs_ = pairs_of(pairs_, d.chunk[c].holders);
    for (flow_step& s : steps_) s.assemble(d, own);
  }

  /// Step n, while it is in progress: until the step after it has been judged as well.
  flow_step& at(long n) { return steps_[n % steps_.size()]; }
  flow_step const& at(long n) const { return steps_[n % steps_.size()]; }
  /// The first step that was not taken; seen: the first whose result was not shown.
  long given() const { return given_; }
  long seen() const { return seen_; }
  bool takes_more() const { return takes_more_; }
  void take_no_more() { takes_more_ = false; }

  /// Begins a call of train().
  void begin(long first) {
    given_ = seen_ = first;
    began_ = std::chrono::steady_clock::now();
  }
  /// Numbers the micro-batches of the steps from `first` on, from 0.
  void number(long first) {
    next_number_ = 0;
    for (long n = first; n < given_; ++n) at(n).number(d_, pairs_, next_number_);
  }
  /// The first number of a micro-batch that no step has.
  int numbered() const { return next_number_; }
  /// Takes the next mini-batch, if there is room and a mini-batch. Returns whether it took one.
  template <class Next>
  bool take(Next const& next) {
    if (!takes_more_ || given_ - seen_ >= most_) return false;
    job j;
    attempt(given_, [&] { return next(j); });
    if (!takes_more_) return false;
    flow_step& s = at(given_);
    s.take(d_, j, own_);
    s.number(d_, pairs_, next_number_);
    ++given_;
    return true;
  }
  /// Notes that step n is judged.
  void confirm(long n, gradient_outcome const& o) {
    at(n).norm = o.norm;
    at(n).end = std::chrono::nanoseconds(std::chrono::steady_clock::now() - began_).count();
  }
  /// Shows the result of the next step to done(result), which returns whether to go on.
  template <class Done>
  void see(Done const& done) {
    flow_step const& s = at(seen_);
    step_result r;
    r.losses = s.losses();
    r.loss = s.loss(), r.gradient_norm = s.norm;
    r.seconds = double(s.end - judged_at_) * 1e-9;
    r.bubble = s.bubble();
    judged_at_ = s.end;
    bool const took_more = takes_more_;
    attempt(seen_, [&] { return done(r); });
    takes_more_ = takes_more_ && took_more;
    ++seen_;
  }
  /// Rethrows what the program threw, unless it threw that for a mini-batch after step n.
  void rethrow_before(long n) const {
    if (failure_ && failed_at_ <= n) std::rethrow_exception(failure_);
  }

 private:
  /// Calls a function of the program for step n, which returns whether to go on. Keeps its
  /// exception.
  template <class Call>
  void attempt(long n, Call const& call) {
    try {
      takes_more_ = call();
    } catch (...) {
      failure_ = std::current_exception();
      failed_at_ = n;
      takes_more_ = false;
    }
  }

  pipeline_description const& d_;
  own_accumulations own_;
  int most_, pairs_ = 1, next_number_ = 0;
  heap_array<flow_step> steps_;
  long given_ = 0, seen_ = 0;
  long judged_at_ = 0;
  std::chrono::steady_clock::time_point began_;  // start of the times of outcomes
  bool takes_more_ = true;
  std::exception_ptr failure_;
  long failed_at_ = 0;  // the step for which the program threw
};

}  // namespace pp::detail
PIPE_OPTIMIZED_END
