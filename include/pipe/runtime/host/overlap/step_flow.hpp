// SPDX-License-Identifier: BSL-1.0
//
// Steps that overlap: every rank runs the actions of one step after those of the step before, and
// updates its own weights in between, without a barrier. Weights have several versions, so that
// micro-batches in flight can go on with older versions, and an update can be taken back.
//
// Confirmed steps have the bits of steps with a barrier. The outcome of a step (global norm, and
// whether all numbers are finite) needs the gradients of all ranks. A rank updates before the
// outcome, as if no clipping were needed. It then runs forwards of the next step with the new
// weights, as far as they need no gradient of the last stage: see early_part. Before the first
// backward of the last stage, its micro-batch has gone through the forward of all stages, so all
// stages have updated and reported. Then each process judges. Until then no gradient has been
// overwritten, so the update of a step that has to be clipped is taken back and made again.
//
// Free steps are not taken back. For several processes see boundary_flow and step_reports.
//
// Words: a period of a rank ends with its update in a step, and may have actions of later steps. A
// segment is a sequence of steps during which the threads of ranks do not return to the calling
// thread; a step that is taken back ends it. A careful rank waits for the outcome of a step before
// it updates: after a step that was clipped, until a step is not clipped.
#pragma once

#include <exception>
#include <utility>

#include <pipe/base/config.hpp>
#include <pipe/runtime/host/core/rank_context.hpp>
#include <pipe/runtime/host/overlap/flow_order.hpp>
#include <pipe/runtime/host/overlap/flow_ranks.hpp>
#include <pipe/runtime/host/overlap/flow_step.hpp>
#include <pipe/runtime/host/overlap/flow_steps.hpp>
#include <pipe/runtime/job.hpp>
#include <pipe/transport/waiting.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp::detail {

/// The calling thread's part of steps that overlap: it takes mini-batches and shows results. The
/// part of the ranks' threads is in flow_ranks. The description of the pipeline has slots for
/// versions of the weights.
///
/// law: with confirmed steps, results, parameters and states have the bits of steps with a barrier.
///      After run(), even if it throws, all ranks have the weights after the same step; a failure
///      in one of several processes breaks the trainer instead
/// law: with free steps, run() of m steps and then of n steps has the bits of run() of m + n steps,
///      since versions are kept in between
template <class T, class Transport>
class step_flow {
  static constexpr bool streams = stream_transport<Transport>;

 public:
  /// needs: the owner and own.shares live as long as this object
  step_flow(rank_context<T, Transport>& owner, own_accumulations const& own)
      : context_(owner),
        steps_(owner.d, own, 3 + flow_order(owner.d, own.count).most_steps_ahead()),
        ranks_(owner, steps_, own.count) {}

  /// Trains from step number `first` on, counted from 0. next(job&) prepares the job of the next
  /// step, whose arrays are copied; it returns false after the last step. done(result) is called
  /// for each step in order, and returns whether to go on. Both are called on the calling thread.
  /// Returns the number of steps.
  ///
  /// throws: what next and done throw, after the steps that have begun; as executor::run
  template <class Next, class Done>
  long run(long first, Next const& next, Done const& done) {
    long begin = first;  // of a segment
    steps_.begin(first);
    ranks_.begin(first);
    std::exception_ptr failure;
    [[maybe_unused]] auto const saying = context_.during_run();
    typename action_runner<T, Transport>::part_of_flow const part(context_.runner,
                                                                  ranks_.boundaries());
    while (ended_at_ < 0 && !failure && (begin < steps_.given() || steps_.takes_more())) {
      ranks_.begin_segment(begin);
      try {
        context_.each_rank([&](int r) { ranks_.advance(r); }, [&] { feed(next, done); });
        // No later step waits for the outcome of the last step, so the last step is judged here.
        while (ranks_.is_free() && judge_updated()) continue;
        if (long const n = ranks_.judged(); !ranks_.is_free() && n < steps_.given())
          ranks_.judge(context_.place.first_rank, n);
        see_judged(next, done);
        begin = ranks_.judged();
        if (unsound_ >= 0)
          break_at(unsound_, "the loss or a gradient was not finite in");
        else if (begin < steps_.given())
          reject(begin, next, done), ++begin;
      } catch (...) {
        failure = std::current_exception();
        stop_at_one_step();
        see_judged(next, done);
      }
    }
    long const end = steps_.seen();
    if (!failure || ranks_.is_left_whole())
      context_.each_rank([&](int r) { ranks_.end(r, end, end > first); });
    ranks_.end(end);
    try {
      if constexpr (streams)
        if (!failure) ranks_.reports().end();
    } catch (...) {
      failure = std::current_exception();
    }
    steps_.rethrow_before(ended_at_ < 0 ? steps_.given() : ended_at_);
    if (failure) std::rethrow_exception(failure);
    return end - first;
  }
  /// The job of the step that was not sound; null if there was none. A confirmed step that was not
  /// sound has changed nothing.
  job const* rejected() const { return unsound_ < 0 ? nullptr : &steps_.at(unsound_).of; }

 private:
  /// Gives ranks steps, and shows results, until all ranks have ended.
  template <class Next, class Done>
  void feed(Next const& next, Done const& done) {
    for (;;) {
      int const news = ranks_.news().now();
      give(next);
      if (ranks_.is_free()) judge_updated();
      if (see_judged(next, done)) continue;
      if (unsound_ == steps_.seen()) steps_.take_no_more(), give(next);
      if (ranks_.have_ended()) return;
      if (auto const why = context_.watch_until(ranks_.news(), progress::after(news),
                                                steps_.at(steps_.seen()).of))
        std::rethrow_exception(why);
    }
  }
  /// Gives ranks steps while there is room.
  template <class Next>
  void give(Next const& next) {
    while (steps_.take(next)) {
      ranks_.give();
      if constexpr (streams)
        ranks_.reports().compare(process_call::kinds::train, steps_.at(steps_.given() - 1).of,
                                 context_.calls.optimizer_settings);
    }
    if (steps_.takes_more() || std::exchange(is_end_told_, true)) return;
    ranks_.give_end();
    if constexpr (streams) ranks_.reports().compare(process_call::kinds::trained, {}, 0);
  }
  /// Shows the results of steps that were judged sound. Returns whether there were any.
  template <class Next, class Done>
  bool see_judged(Next const& next, Done const& done) {
    bool any = false;
    for (; steps_.seen() < ranks_.judged(); any = true) {
      give(next);
      steps_.see(done);
    }
    return any;
  }
  /// Judges the next free step if all ranks have updated in it; returns whether it was judged
  /// sound. After a step that is not sound, all steps that are taken run to their end, in all
  /// processes alike.
  ///
  /// needs: between processes, the results of the steps before are shown, as other processes may
  ///        wait for mini-batches that are taken then
  bool judge_updated() {
    long const n = ranks_.judged();
    if (n == steps_.given() || unsound_ >= 0 || !ranks_.have_updated(n)) return false;
    gradient_outcome const o = ranks_.outcome(context_.place.first_rank, n);
    if (!steps_.at(n).is_sound(o)) return unsound_ = n, false;
    return ranks_.confirm(n, o), true;
  }
  /// Takes back the update of step n, which was not the right one, and makes the update again if
  /// the step is sound. If it is not sound, as many mini-batches are taken as may be in progress,
  /// so that all processes end after the same mini-batch.
  template <class Next, class Done>
  void reject(long n, Next const& next, Done const& done) {
    context_.each_rank([&](int r) { ranks_.take_back(r, n); });
    gradient_outcome const o = steps_.at(n).outcome();
    if (!steps_.at(n).is_sound(o)) {
      give(next), steps_.take_no_more(), give(next);
      ended_at_ = unsound_ = n;
      return;
    }
    context_.each_rank([&](int r) { ranks_.update_again(r, n, o.factor); });
    ranks_.confirm(n, o);
    see_judged(next, done);
  }
  /// After a failure of free steps: stages have weights of different steps.
  void break_at(long n, char const* how) {
    context_.updates.break_at(n + 1, how);
    ended_at_ = n;
  }
  /// After a failure: brings all ranks to the weights after the last step in which all of them have
  /// updated.
  void stop_at_one_step() {
    steps_.take_no_more();
    is_end_told_ = true;
    if (!ranks_.is_left_whole()) {
      while (!streams && judge_updated()) continue;
      return break_at(ranks_.judged(), "a rank failed in");
    }
    long least = ranks_.first_not_updated();
    if (least > ranks_.judged()) {
      flow_step const& last = steps_.at(least - 1);
      gradient_outcome const o = last.outcome();
      if (last.is_as_updated(o))
        ranks_.confirm(least - 1, o);
      else
        --least;
    }
    context_.each_rank([&](int r) { ranks_.take_back(r, least); });
  }

  rank_context<T, Transport>& context_;
  // In progress are a step that is judged, the next step, a step that waits, and the steps by which
  // forwards are ahead.
  flow_steps steps_;
  flow_ranks<T, Transport> ranks_;
  long ended_at_ = -1;        // the step in which the run ended early: not sound, or failed
  long unsound_ = -1;         // the first step that was judged not sound
  bool is_end_told_ = false;  // that there will be no more steps
};

}  // namespace pp::detail
PIPE_OPTIMIZED_END
