// SPDX-License-Identifier: BSL-1.0
//
// Steps that overlap: every rank runs the actions of one step after those of the step before, and
// updates its own weights in between, without a barrier. Weights have several versions, so that
// micro-batches in flight can go on with older ones, and an update can be taken back.
//
// Confirmed steps have the bits of steps with a barrier. The verdict on a step (global norm, and
// whether all numbers are finite) needs the gradients of all ranks. A rank updates before the
// verdict, as if no clipping were needed, and runs forwards of the next step with the result, as
// far as that goes without a gradient of the last stage: see early_part. The first backward of the
// last stage comes when its micro-batch has been forward in all stages, so when all stages have
// updated and reported. Then each process judges. Until then all gradients are still there, so a
// step that has to be clipped is taken back and updated again.
//
// Free steps are not taken back. Over processes: see boundary_flow, step_reports.
//
// Words: a period of a rank ends with its update in a step, and may have actions of later steps. A
// segment is a sequence of steps during which the threads of ranks do not return to the calling
// thread; a step that is taken back ends it. A careful rank waits for the verdict on a step before
// it updates, from a step that was clipped until one that is not.
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

/// Runs steps of ranks whose description keeps versions of the weights: the calling thread's part,
/// which takes mini-batches and shows results. That of ranks is in flow_ranks.
///
/// law: with confirmed steps, results, parameters and states have the bits of steps with a barrier,
///      and after run(), however it ends, all ranks have the weights after the same step
/// law: with free steps, run(a) and run(b) have the bits of run(a + b): versions are kept between
template <class T, class Transport>
class step_flow {
  static constexpr bool streams = stream_transport<Transport>;

 public:
  /// needs: the context, and the shares of leaves, live as long
  step_flow(rank_context<T, Transport>& context, own_leaves const& own)
      : context_(context),
        steps_(context.d, own, 3 + flow_order(context.d, own.count).most_steps_ahead()),
        ranks_(context, steps_, own.count) {}

  /// Trains from step number `first` on, counted from 0, on the mini-batches of next(job&), which
  /// prepares the job of the next step, or returns false after the last; its arrays are copied.
  /// done(result) is called for each step in turn, and returns whether to go on; both on the
  /// calling thread. Returns the number of steps.
  ///
  /// throws: what next and done throw, after the steps that had begun; as executor::run
  template <class Next, class Done>
  long run(long first, Next const& next, Done const& done) {
    long begin = first;  // of a segment
    steps_.begin(first);
    ranks_.begin(first);
    std::exception_ptr failure;
    [[maybe_unused]] auto const saying = context_.during_run();
    typename action_runner<T, Transport>::part_of_flow const part(context_.runner,
                                                                  ranks_.boundaries());
    while (rejected_ < 0 && !failure && (begin < steps_.given() || steps_.takes_more())) {
      ranks_.begin_segment(begin);
      try {
        context_.each_rank([&](int r) { ranks_.advance(r); }, [&] { feed(next, done); });
        // No backward follows the last step of all.
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
    steps_.rethrow_before(rejected_ < 0 ? steps_.given() : rejected_);
    if (failure) std::rethrow_exception(failure);
    return end - first;
  }
  /// The job of the step that was not sound, if one was: it changed nothing.
  job const* rejected() const { return rejected_ < 0 ? nullptr : &steps_.at(rejected_).of; }

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
  /// Judges the next free step if all ranks have updated it; returns whether it is sound. After one
  /// that is not, those that are taken run to their end, in all processes alike.
  ///
  /// needs: between processes: those before it are seen, as others may need what is taken then
  bool judge_updated() {
    long const n = ranks_.judged();
    if (n == steps_.given() || unsound_ >= 0 || !ranks_.have_updated(n)) return false;
    gradient_outcome const o = ranks_.outcome(context_.place.first_rank, n);
    if (!steps_.at(n).is_sound(o)) return unsound_ = n, false;
    return ranks_.confirm(n, o), true;
  }
  /// Takes a step back that was not updated as it should be, and updates it again if its numbers
  /// are finite. If they are not, as many mini-batches are taken as may be in progress, so that all
  /// processes end after the same one.
  template <class Next, class Done>
  void reject(long n, Next const& next, Done const& done) {
    context_.each_rank([&](int r) { ranks_.take_back(r, n); });
    gradient_outcome const o = steps_.at(n).outcome();
    if (!steps_.at(n).is_sound(o)) {
      give(next), steps_.take_no_more(), give(next);
      rejected_ = n;
      return;
    }
    context_.each_rank([&](int r) { ranks_.update_again(r, n, o.factor); });
    ranks_.confirm(n, o);
    see_judged(next, done);
  }
  /// After a failure of free steps: stages have weights of different steps.
  void break_at(long n, char const* how) {
    context_.updates.break_at(n + 1, how);
    rejected_ = n;
  }
  /// After a failure: all ranks are brought to the last step that all of them have updated.
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
  // In progress: one that is judged, the next one, one that waits, and those that forwards are
  // ahead of.
  flow_steps steps_;
  flow_ranks<T, Transport> ranks_;
  long rejected_ = -1;        // a step
  long unsound_ = -1;         // a free step
  bool is_end_told_ = false;  // that there will be no more steps
};

}  // namespace pp::detail
PIPE_OPTIMIZED_END
