// SPDX-License-Identifier: BSL-1.0
//
// Steps that overlap: every rank runs the actions of one step after those of the step before, and
// updates its own weights in between, without a barrier. Weights have several versions, so that
// micro-batches in flight can go on with older ones, and an update can be taken back.
//
// Confirmed steps have the bits of steps with a barrier. The verdict on a step (global norm, and
// whether all numbers are finite) needs the gradients of all ranks. A rank updates before there is
// one, as if no clipping were needed, and runs forwards of the next step with the result, as far as
// that goes without a gradient of the last stage: see early_part. The first backward there comes
// when its micro-batch has been forward in all stages, so when all of them have updated, and so
// have reported. Then each process judges. Until then all gradients are still there, so a step that
// has to be clipped is taken back and updated again.
//
// Free steps are not taken back. Over processes: see boundary_flow, step_reports.
#pragma once

#include <cstddef>
#include <exception>
#include <utility>

#include <pipe/base/config.hpp>
#include <pipe/base/heap_array.hpp>
#include <pipe/runtime/actions.hpp>
#include <pipe/runtime/host/boundary_flow.hpp>
#include <pipe/runtime/host/flow_leaves.hpp>
#include <pipe/runtime/host/flow_order.hpp>
#include <pipe/runtime/host/flow_records.hpp>
#include <pipe/runtime/host/flow_step.hpp>
#include <pipe/runtime/host/flow_steps.hpp>
#include <pipe/runtime/host/flow_weights.hpp>
#include <pipe/runtime/host/rank_context.hpp>
#include <pipe/runtime/host/rank_threads.hpp>
#include <pipe/runtime/host/step_operations.hpp>
#include <pipe/runtime/host/step_reports.hpp>
#include <pipe/runtime/host/step_verdicts.hpp>
#include <pipe/runtime/job.hpp>
#include <pipe/transport/waiting.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp::detail {

/// Runs steps of ranks whose description keeps versions of the weights.
///
/// law: with confirmed steps, results, parameters and states have the bits of steps with a barrier,
///      and after run(), however it ends, all ranks have the weights after the same step
/// law: with free steps, run(a) and run(b) have the bits of run(a + b): versions are kept between
template <class T, class Transport>
class step_flow {
  static constexpr bool streams = stream_transport<Transport>;

 public:
  /// needs: both live as long
  step_flow(rank_context<T, Transport>& context, rank_threads<T, Transport>& threads,
            own_leaves const& own)
      : context_(context), threads_(threads), d_(context.d), order_(d_, own.count),
        is_free_(order_.is_free()), measured_(d_.ranks), updated_(d_.ranks), joined_(d_.ranks),
        ranks_(d_.ranks), weights_(context_, order_), leaves_(context_),
        steps_(d_, own, 3 + order_.most_steps_ahead()), records_(context_),
        boundaries_(d_, context.transport), reports_(d_, context.transport, context.place) {}

  /// Trains from step number `first` on, counted from 0, on the mini-batches of next(job&), which
  /// prepares the job of the next step, or returns false after the last; its arrays are copied.
  /// done(result) is called for each step in turn, and returns whether to go on; both on the
  /// calling thread. Returns the number of steps.
  ///
  /// throws: what next and done throw, after the steps that had begun; as executor::run
  template <class Next, class Done>
  long run(long first, Next const& next, Done const& done) {
    begin_ = first;
    steps_.begin(first);
    records_.begin(first);
    weights_.begin(first, threads_);
    std::exception_ptr failure;
    [[maybe_unused]] auto const saying = context_.during_run();
    typename action_runner<T, Transport>::part_of_flow const part(context_.runner, boundaries_);
    while (rejected_ < 0 && !failure && (begin_ < steps_.given() || steps_.takes_more())) {
      begin_segment();
      try {
        threads_.each_rank([&](int r) { advance(r); }, [&] { feed(next, done); });
        // No backward follows the last step of all.
        while (is_free_ && judge_updated()) continue;
        if (!is_free_ && judged() < steps_.given()) judge(context_.place.first_rank, judged());
        see_judged(next, done);
        if (unsound_ >= 0)
          break_at(unsound_, "the loss or a gradient was not finite in");
        else if (judged() < steps_.given())
          reject(judged(), next, done);
        else
          begin_ = judged();
      } catch (...) {
        failure = std::current_exception();
        stop_at_one_step();
        see_judged(next, done);
      }
    }
    if (!failure || is_left_whole())
      threads_.each_rank([&](int r) {
        if (steps_.seen() > first) average(r, steps_.seen() - 1);
        weights_.end(r);
      });
    if (d_.tie_count > 0) context_.copies.was_updated = true;
    records_.end(steps_.seen());
    try {
      if (!failure) end_call();
    } catch (...) {
      failure = std::current_exception();
    }
    steps_.rethrow_before(rejected_ < 0 ? steps_.given() : rejected_);
    if (failure) std::rethrow_exception(failure);
    return steps_.seen() - first;
  }
  /// The job of the step that was not sound, if one was: it changed nothing.
  job const* rejected() const { return rejected_ < 0 ? nullptr : &at(rejected_).of; }

 private:
  /// What only the rank's own thread uses, and the caller between segments.
  struct alignas(64) rank_state {
    long known = 0;           // steps that it knows
    long begun = 0;           // when its period began
    bool is_careful = false;  // waits for the verdict before it updates
    bool is_certain = false;  // the step that it is in will not be run again
  };
  static constexpr int ended = 1 << 30;  // as a number of given steps: there will be no more

  /// Step n, while it is in progress.
  flow_step& at(long n) { return steps_.at(n); }
  flow_step const& at(long n) const { return steps_.at(n); }
  /// A step's number as counters have it, which count from the segment's begin.
  int count(long n) const { return int(n - begin_); }
  /// Leaves from there to one of step n.
  int leaves_before(long n, int leaf) const { return count(n) * order_.leaves() + leaf; }
  /// The first step that is not judged, or not right.
  long judged() const { return begin_ + verdicts_.right(); }
  /// Whether all ranks can be brought to the same step after a failure: between processes it is the
  /// end.
  bool is_left_whole() const { return !is_free_ && !streams; }
  waited await(progress& p, int n) { return p.wait(n, context_.settings.waiting, failed()); }
  failure_flag const& failed() const { return context_.failure.flag(); }
  void require(int r, waited outcome) { context_.require(r, outcome); }

  // ---- the calling thread ----

  void begin_segment() {
    leaves_.begin_segment();
    for (progress& p : measured_) p.reset();
    for (progress& p : updated_) p.reset();
    for (progress& p : joined_) p.reset();
    verdicts_.reset(), available_.reset(), ended_.reset();
    reports_.begin();
    steps_.number(begin_);
    available_.publish(steps_.takes_more() ? count(steps_.given()) : ended);
  }
  /// Gives ranks steps, and shows results, until all ranks have ended.
  template <class Next, class Done>
  void feed(Next const& next, Done const& done) {
    for (;;) {
      int const news = news_.now();
      give(next);
      if (is_free_) judge_updated();
      if (see_judged(next, done)) continue;
      if (unsound_ == steps_.seen()) steps_.take_no_more(), give(next);
      if (ended_.now() == context_.place.ranks) return;
      threads_.watch(news_, progress::after(news), at(steps_.seen()).of);
    }
  }
  /// Gives ranks steps while there is room.
  template <class Next>
  void give(Next const& next) {
    while (steps_.take(next)) {
      long const n = steps_.given() - 1;
      available_.publish(count(n + 1));
      if constexpr (streams)
        reports_.compare(process_call::kinds::train, at(n).of, context_.calls.optimizer_settings);
    }
    if (steps_.takes_more() || std::exchange(is_end_told_, true)) return;
    available_.publish(ended);
    if constexpr (streams) reports_.compare(process_call::kinds::trained, {}, 0);
  }
  /// Shows the results of steps that were judged sound. Returns whether there were any.
  template <class Next, class Done>
  bool see_judged(Next const& next, Done const& done) {
    bool any = false;
    for (; steps_.seen() < judged(); any = true) {
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
    long const n = judged();
    if (n == steps_.given() || unsound_ >= 0) return false;
    bool have_updated = true;
    context_.for_each_rank([&](int r) { have_updated &= updated_[r].now() >= count(n + 1); });
    if (!have_updated) return false;
    if constexpr (streams)
      require(context_.place.first_rank, reports_.receive(count(n), at(n), failed()));
    gradient_outcome const o = at(n).outcome();
    if (!at(n).is_sound(o)) return unsound_ = n, false;
    return confirm(n, o), true;
  }
  /// Takes a step back that was not updated as it should be, and updates it again if its numbers
  /// are finite. If they are not, as many mini-batches are taken as may be in progress, so that all
  /// processes end after the same one.
  template <class Next, class Done>
  void reject(long n, Next const& next, Done const& done) {
    threads_.each_rank([&](int r) { take_back(r, n); });
    gradient_outcome const o = at(n).outcome();
    if (!at(n).is_sound(o)) {
      give(next), steps_.take_no_more(), give(next);
      rejected_ = n;
      return;
    }
    threads_.each_rank([&](int r) {
      meeting again(*this, r, n);
      again.begin_update(o.factor);
      operations(again).update();
      again.end_update();
      average(r, n);
      ranks_[r].is_careful = true;
    });
    confirm(n, o);
    see_judged(next, done);
    begin_ = n + 1;
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
    if (!is_left_whole()) {
      while (!streams && judge_updated()) continue;
      return break_at(judged(), "a rank failed in");
    }
    long least = steps_.given();
    for (int r = 0; r < d_.ranks; ++r)
      if (weights_.newest(r) < least) least = weights_.newest(r);
    if (least > judged()) {
      gradient_outcome const o = at(least - 1).outcome();
      if (at(least - 1).is_as_updated(o))
        confirm(least - 1, o);
      else
        --least;
    }
    threads_.each_rank([&](int r) { take_back(r, least); });
  }
  void take_back(int r, long to) {
    if (weights_.take_back(r, to)) records_.take_back(r, to);
  }

  // ---- verdicts ----

  void confirm(long n, gradient_outcome const& o) {
    steps_.confirm(n, o);
    verdicts_.publish(count(n), true);
    news_.add();
  }
  /// Whether confirmed step n was updated as it should be or, of a rank that has not updated yet,
  /// is sound: all ranks have come to the same place, or will without a verdict.
  bool judge(int r, long n) {
    if (!verdicts_.claim(count(n))) {
      require(r, verdicts_.await(count(n), context_.settings.waiting, failed()));
      return judged() > n;
    }
    bool const is_careful = ranks_[r].is_careful;
    context_.for_each_rank(
        [&](int k) { require(r, await(is_careful ? measured_[k] : updated_[k], count(n + 1))); });
    if constexpr (streams) require(r, reports_.receive(count(n), at(n), failed()));
    gradient_outcome const o = at(n).outcome();
    bool const is_right = is_careful ? at(n).is_sound(o) : at(n).is_as_updated(o);
    if (is_right)
      confirm(n, o);
    else
      verdicts_.publish(count(n), false);
    return is_right;
  }

  // ---- the thread of a rank ----

  void advance(int r) {
    struct at_end {
      step_flow& of;
      ~at_end() { of.ended_.add(), of.news_.add(); }
    } const end{*this};
    auto& me = context_.ranks[r];
    me.leaves.begin(before_all_);
    ranks_[r].known = begin_;
    if constexpr (streams) boundaries_.begin(r);
    for (long n = begin_ - order_.steps_ahead(r);; ++n) {
      if (n >= begin_ && !is_given(r, n)) break;
      me.waited = 0, ranks_[r].begun = context_.now();
      records_.keep(r, n + 1);
      if (n >= begin_) {
        meeting m(*this, r, n);
        operations(m).renew_copies(false);
      }
      bool const is_certain = ranks_[r].is_certain = is_free_ || n == begin_;
      if (n >= begin_ && is_certain) expect_reports(n);
      bool goes_on = true;
      for (int leaf = 0; goes_on && leaf < order_.leaves(); ++leaf) goes_on = run_leaf(r, n, leaf);
      if (!goes_on) break;
    }
    end_segment(r);
  }
  /// The part of period n that ends with the last action of a leaf, and after the last leaf with
  /// the update. Returns false if the step before was not right, or this one is not sound.
  bool run_leaf(int r, long n, int leaf) {
    bool const& is_certain = ranks_[r].is_certain;
    if (n >= begin_) leaves_.begin(r, at(n).leaf(leaf), leaves_before(n, leaf + 1));
    auto const actions = order_.actions_of(r, leaf);
    for (action a; action const& planned : actions) {
      if (!is_certain && !at(n).early.has(r, &planned - actions.begin()) && !go_on(r, n))
        return false;
      auto const [step, of] = order_.place_of(planned, n, leaf);
      a = planned, a.micro_batch %= d_.micro_batches;
      if (step < begin_ || !is_given(r, step)) continue;
      flow_leaf const& l = at(step).leaf(of);
      if (samples_in(d_, l.of, a.micro_batch) == 0) continue;
      if (int const owner = d_.chunk[a.chunk].rank; owner != r)
        require(r, await(leaves_.begun(owner), leaves_before(n, leaf + 1)));
      run_place const place{l.of, l.first, weights_.shift_for(r, a, n, step), records_.number(step),
                            of * d_.micro_batches};
      a.version = records_.number(weights_.version_of(r, a, n));
      context_.runner.execute(r, place, a, planned.with_next ? &planned + 1 : nullptr);
    }
    if (!is_certain && !go_on(r, n)) return false;
    if (n < begin_) return true;
    meeting m(*this, r, n, leaf);
    bool const has_updated = operations(m).end();
    if (has_updated) m.end_update();
    return has_updated || leaf + 1 < order_.leaves();
  }
  /// After the early part of step n: waits for the verdict on the step before; returns whether it
  /// was right. What comes next waits for the last stage's first backward, so for a verdict anyway.
  bool go_on(int r, long n) {
    long const start = context_.now();
    context_.ranks[r].doing.change(activity::kind::meets, 0, start);
    bool const was_right = judge(r, n - 1);
    context_.ranks[r].waited += context_.now() - start;
    if (!was_right) return false;
    ranks_[r].is_certain = true;
    average(r, n - 1);
    expect(r);
    expect_reports(n);
    return true;
  }
  /// Waits for a step, or for the end of all; returns whether it is there.
  bool is_given(int r, long step) {
    require(r, await(available_, count(step + 1)));
    int const available = available_.now();
    long const given = available == ended ? steps_.given() : begin_ + available;
    if (given > std::exchange(ranks_[r].known, given)) expect(r);
    return step < given;
  }
  /// Expects the values of all that is certain to come: free steps that are given, or the one after
  /// those that are judged, and the early part of the next one, unless a verdict comes before it.
  void expect(int r) {
    if constexpr (streams) {
      long const known = ranks_[r].known, first = judged() + 1,
                 certain = is_free_ || known < first ? known : first;
      bool const has_early = certain < known && !ranks_[r].is_careful;
      boundaries_.expect(r, at(certain - 1).next_first(), [&](int chunk) {
        return has_early ? at(certain).early.forwards(d_, chunk) : 0;
      });
    }
  }
  void end_call() {
    if constexpr (streams) reports_.end();
  }
  void expect_reports(long n) {
    if constexpr (streams) reports_.expect(count(n));
  }
  /// The end of rank r's steps: waits until all that is sent, by it and to it, is there.
  void end_segment(int r) {
    if constexpr (streams) {
      require(r, boundaries_.end(r, failed()));
      if (int const n = measured_[r].now(); n > 0) require(r, reports_.sent(r, n - 1, failed()));
    }
  }
  /// The meeting of a rank at the end of a leaf of step n: counters of the ranks that it depends
  /// on. Averages of parameters follow when the step is confirmed.
  class meeting {
   public:
    static constexpr unsigned later = run_fact::has_averages;

    meeting(step_flow& flow, int r, long n, int leaf) : flow_(flow), r_(r), n_(n), leaf_(leaf) {}
    meeting(step_flow& flow, int r, long n) : meeting(flow, r, n, flow.order_.leaves() - 1) {}

    int rank() const { return r_; }
    job const& of() const { return leaf().of; }
    waited await_holders() {
      return flow_.leaves_.await_holders(r_, leaf(), flow_.leaves_before(n_, leaf_ + 1),
                                         [this](progress& p, int n) { return flow_.await(p, n); });
    }
    void await_gradients() {
      flow_.joined_[r_].publish(flow_.count(n_ + 1));
      flow_.order_.for_later_places(
          r_, [this](int other) { await_other(other, flow_.joined_[other], n_ + 1); });
    }
    void await_values() {
      flow_.order_.for_first_places(
          r_, [this](int other) { await_other(other, flow_.updated_[other], n_); });
    }
    void gather(unsigned) {
      flow_.report(r_, n_, of());
      flow_.measured_[r_].publish(flow_.count(n_ + 1));
    }
    /// A step is taken for sound, and not clipped, unless the rank is careful.
    unsigned judge(unsigned facts) {
      rank_state& me = flow_.ranks_[r_];
      double factor = of().gradient_scale;
      if (me.is_careful) {
        if (!flow_.judge(r_, n_)) return facts;
        factor = flow_.at(n_).outcome().factor;
        me.is_careful = factor != of().gradient_scale;
        flow_.expect(r_);
      }
      begin_update(factor);
      return facts | run_fact::is_sound;
    }
    double factor() const { return factor_; }

    /// Begins the rank's update by gradients times a factor, and ends it.
    void begin_update(double factor) {
      factor_ = factor;
      start_ = flow_.context_.now();
      flow_.weights_.begin_update(r_, n_);
    }
    void end_update() {
      flow_.weights_.end_update(r_, n_);
      if (int const c = flow_.order_.first_chunk_of(r_); c >= 0)
        flow_.records_.add_update(r_, c, flow_.at(n_).last_micro_batch(flow_.d_), n_, start_);
      flow_.updated_[r_].publish(flow_.count(n_ + 1));
      if (flow_.is_free_) flow_.average(r_, n_), flow_.news_.add();
    }

   private:
    flow_leaf const& leaf() const { return flow_.at(n_).leaf(leaf_); }
    /// Waits for a rank with which this one shares a parameter, if that rank is here; otherwise a
    /// message is awaited.
    void await_other(int other, progress& of, long step) {
      if (flow_.context_.place.has(other)) flow_.require(r_, flow_.await(of, flow_.count(step)));
    }

    step_flow& flow_;
    int r_;
    long n_;
    int leaf_;
    double factor_ = 1;
    long start_ = 0;
  };
  auto operations(meeting& m) { return step_operations(context_, m.rank(), m.of(), m); }
  /// Notes, and reports to other processes, what rank r has measured in step n, and the losses.
  void report(int r, long n, job const& j) {
    flow_step& s = at(n);
    parameter_work<T, Transport> const& parameters = context_.parameters;
    order_.for_chunks_of(r, [&](int c) {
      for (int i = 0; i < 2 * d_.chunk[c].parameter_count; ++i)
        s.squares_of(d_, c)[i] = parameters.squares_of(c)[i];
    });
    if (r == order_.last_rank()) s.set_losses(parameters.losses(r, j));
    s.add_period(context_.now() - ranks_[r].begun, context_.ranks[r].waited);
    if constexpr (streams) require(r, reports_.send(r, count(n), s, failed()));
  }
  /// Updates the averages of rank r's parameters after step n, which is confirmed, unless that is
  /// done.
  void average(int r, long n) {
    meeting m(*this, r, n);
    if (weights_.takes_average(r, n)) operations(m).execute(step_op::average);
  }

  rank_context<T, Transport>& context_;
  rank_threads<T, Transport>& threads_;
  pipeline_description const& d_;
  flow_order order_;
  bool is_free_;  // or each is confirmed: see step_overlap
  // By rank, counted in steps of the segment: measured; weights updated; gradients of shared
  // parameters complete.
  heap_array<progress> measured_, updated_, joined_;
  heap_array<rank_state> ranks_;
  flow_weights<T, Transport> weights_;
  flow_leaves<T, Transport> leaves_;
  // In progress: one that is judged, the next one, one that waits, and those that forwards are
  // ahead of.
  flow_steps steps_;
  flow_records<T, Transport> records_;
  boundary_flow<Transport> boundaries_;
  step_reports<Transport> reports_;
  step_verdicts verdicts_;
  job const before_all_{.what = job::kind::train};  // of ranks that are in no step
  progress available_;                              // steps given to ranks
  progress ended_, news_;     // ranks at the segment's end; something for the calling thread
  long begin_ = 0;            // the segment's first step
  long rejected_ = -1;        // a step
  long unsound_ = -1;         // a free step
  bool is_end_told_ = false;  // that there will be no more steps
};

}  // namespace pp::detail
PIPE_OPTIMIZED_END
