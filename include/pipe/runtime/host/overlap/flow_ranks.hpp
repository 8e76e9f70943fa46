// SPDX-License-Identifier: BSL-1.0
//
// The threads of ranks where steps overlap: each rank runs its actions of a step, ends the step and
// begins the next step, as far as it may without an outcome. See step_flow.
//
// A step is a tree of accumulations, each a run of the schedule. A rank goes from one accumulation
// to the next at once: the gradients of an accumulation are joined with those of the accumulations
// before it, so that the next accumulation may overwrite them. Only the last accumulation of a step
// is followed by an update.
#pragma once

#include <utility>

#include <pipe/base/config.hpp>
#include <pipe/base/heap_array.hpp>
#include <pipe/runtime/actions.hpp>
#include <pipe/runtime/host/core/boundary_flow.hpp>
#include <pipe/runtime/host/core/rank_context.hpp>
#include <pipe/runtime/host/core/step_operations.hpp>
#include <pipe/runtime/host/overlap/flow_order.hpp>
#include <pipe/runtime/host/overlap/flow_records.hpp>
#include <pipe/runtime/host/overlap/flow_step.hpp>
#include <pipe/runtime/host/overlap/flow_steps.hpp>
#include <pipe/runtime/host/overlap/flow_weights.hpp>
#include <pipe/runtime/host/overlap/step_outcomes.hpp>
#include <pipe/runtime/host/overlap/step_reports.hpp>
#include <pipe/runtime/job.hpp>
#include <pipe/runtime/step_end.hpp>
#include <pipe/transport/waiting.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp::detail {

/// The ranks of this process, in a segment of steps. Methods that take a rank are called on its
/// thread, the others on the calling thread.
///
/// law: waits have no cycle: within an accumulation ranks wait only as the proof of the order
///      allows, and a rank waits for the end of an accumulation on other ranks only after its own
///      actions of the accumulation
template <class T, class Transport>
class flow_ranks {
  static constexpr bool streams = stream_transport<Transport>;

 public:
  /// needs: owner and steps live as long as this object
  flow_ranks(rank_context<T, Transport>& owner, flow_steps& steps, int accumulations)
      : context_(owner), d_(owner.d), steps_(steps), order_(d_, accumulations),
        is_free_(order_.is_free()), begun_(d_.ranks), done_(d_.ranks), joined_(d_.ranks),
        measured_(d_.ranks), updated_(d_.ranks), ranks_(d_.ranks), weights_(context_, order_),
        records_(context_), boundaries_(d_, owner.transport),
        reports_(d_, owner.transport, owner.place) {}

  /// Whether steps are free; otherwise each step is confirmed: see step_overlap.
  bool is_free() const { return is_free_; }
  /// Whether all ranks can be brought to the same step after a failure. Neither free steps nor
  /// steps of several processes can.
  bool is_left_whole() const { return !is_free_ && !streams; }

  // ---- the calling thread ----

  /// Begins a call of train() with step `first`.
  void begin(long first) {
    records_.begin(first);
    weights_.begin(first);
  }
  /// Begins a segment with step `first`.
  void begin_segment(long first) {
    begin_ = first;
    for (heap_array<progress>* of : {&begun_, &done_, &joined_, &measured_, &updated_})
      for (progress& p : *of) p.reset();
    outcomes_.reset(), available_.reset(), ended_.reset();
    reports_.begin();
    steps_.number(first);
    steps_.takes_more() ? give() : give_end();
  }
  /// Lets ranks run all steps that are given; give_end: there will be no more steps.
  void give() { available_.publish(count(steps_.given())); }
  void give_end() { available_.publish(ended); }
  /// The first step that is not judged, or that is not right.
  long judged() const { return begin_ + outcomes_.right(); }
  /// Whether all ranks here have updated in step n. have_ended: whether they are at the end of the
  /// segment.
  bool have_updated(long n) const {
    bool all = true;
    context_.for_each_rank([&](int r) { all &= updated_[r].now() >= count(n + 1); });
    return all;
  }
  bool have_ended() const { return ended_.now() == context_.place.ranks; }
  /// The counter of events for the calling thread: outcomes, updates of free steps, ends of ranks.
  progress& news() { return news_; }
  /// The first step in which not all ranks have updated.
  long first_not_updated() const {
    long least = steps_.given();
    for (int r = 0; r < d_.ranks; ++r)
      if (weights_.newest(r) < least) least = weights_.newest(r);
    return least;
  }
  step_reports<Transport>& reports() { return reports_; }
  boundary_flow<Transport>& boundaries() { return boundaries_; }
  /// The outcome of step n.
  ///
  /// needs: all ranks have measured the step
  gradient_outcome outcome(int r, long n) {
    if constexpr (streams) require(r, reports_.receive(count(n), at(n), failed()));
    return at(n).outcome();
  }
  void confirm(long n, gradient_outcome const& o) {
    steps_.confirm(n, o);
    outcomes_.publish(count(n), true);
    news_.add();
  }
  /// Judges confirmed step n, or waits for its outcome. Returns whether the step is right: the
  /// update that was made is right or, if rank r is careful and has not updated yet, the step is
  /// sound. All ranks have reached this point, or will without an outcome.
  bool judge(int r, long n) {
    if (!outcomes_.claim(count(n))) {
      require(r, outcomes_.await(count(n), context_.settings.waiting, failed()));
      return judged() > n;
    }
    bool const is_careful = ranks_[r].is_careful;
    context_.for_each_rank(
        [&](int k) { require(r, await(is_careful ? measured_[k] : updated_[k], count(n + 1))); });
    gradient_outcome const o = outcome(r, n);
    bool const is_right = is_careful ? at(n).is_sound(o) : at(n).is_as_updated(o);
    if (is_right)
      confirm(n, o);
    else
      outcomes_.publish(count(n), false);
    return is_right;
  }
  /// Ends a call of train() before step n, once all ranks have passed end(r, ...).
  void end(long n) {
    if (d_.ties.count > 0) context_.copies.was_updated = true;
    records_.end(n);
  }

  // ---- the thread of a rank ----

  /// Runs rank r's actions in the steps of a segment.
  void advance(int r) {
    struct at_end {
      flow_ranks& of;
      ~at_end() { of.ended_.add(), of.news_.add(); }
    } const end{*this};
    auto& me = context_.ranks[r];
    me.sums.begin(before_all_);
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
      for (int accumulation = 0; goes_on && accumulation < order_.accumulations(); ++accumulation)
        goes_on = run_accumulation(r, n, accumulation);
      if (!goes_on) break;
    }
    end_segment(r);
  }
  /// Takes rank r's last update back, unless the rank's newest version is `to`, the weights before
  /// step `to`.
  void take_back(int r, long to) {
    if (weights_.take_back(r, to)) records_.take_back(r, to);
  }
  /// Makes the update of step n again, after it was taken back, with gradients times a factor. From
  /// now on rank r is careful.
  void update_again(int r, long n, double factor) {
    meeting m(*this, r, n);
    m.begin_update(factor);
    operations(m).update();
    m.end_update();
    average(r, n);
    ranks_[r].is_careful = true;
  }
  /// Ends a call of train() before step n. has_steps: whether the call has had a step
  void end(int r, long n, bool has_steps) {
    if (has_steps) average(r, n - 1);
    weights_.end(r);
  }

 private:
  /// Used by the rank's own thread, and by the calling thread between segments.
  struct alignas(64) rank_state {
    long known = 0;           // steps that the rank knows to be given
    long begun = 0;           // time at which the rank's period began
    bool is_careful = false;  // the rank waits for an outcome before it updates
    bool is_certain = false;  // the rank's current step will not be run again
  };
  static constexpr int ended = 1 << 30;  // a number of given steps that stands for: no more steps

  /// Step n, while it is in progress.
  flow_step& at(long n) { return steps_.at(n); }
  flow_step const& at(long n) const { return steps_.at(n); }
  /// The number of step n in counters, which count from the segment's first step.
  int count(long n) const { return int(n - begin_); }
  /// The number of accumulations from the segment's first step to an accumulation of step n.
  int accumulations_before(long n, int accumulation) const {
    return count(n) * order_.accumulations() + accumulation;
  }
  waited await(progress& p, int n) { return p.wait(n, context_.settings.waiting, failed()); }
  failure_flag const& failed() const { return context_.failure.flag(); }
  void require(int r, waited outcome) { context_.require(r, outcome); }

  /// Runs the part of period n that ends with the last action of an accumulation and, after the
  /// last accumulation, with the update. Returns false if the step before was not right, or if step
  /// n is not sound.
  bool run_accumulation(int r, long n, int accumulation) {
    bool const& is_certain = ranks_[r].is_certain;
    if (n >= begin_) {
      context_.ranks[r].sums.begin(at(n).accumulation(accumulation).of);
      begun_[r].publish(accumulations_before(n, accumulation + 1));
    }
    auto const actions = order_.actions_of(r, accumulation);
    for (action a; action const& planned : actions) {
      if (!is_certain && !at(n).early.has(r, &planned - actions.begin()) && !go_on(r, n))
        return false;
      auto const [step, of] = order_.place_of(planned, n, accumulation);
      a = planned, a.micro_batch %= d_.micro_batches;
      if (step < begin_ || !is_given(r, step)) continue;
      flow_accumulation const& l = at(step).accumulation(of);
      if (samples_in(d_, l.of, a.micro_batch) == 0) continue;
      if (int const owner = d_.chunk[a.chunk].rank; owner != r)
        require(r, await(begun_[owner], accumulations_before(n, accumulation + 1)));
      action_context const place{l.of, l.first, weights_.shift_for(r, a, n, step),
                                 records_.number(step), of * d_.micro_batches};
      a.version = records_.number(weights_.version_of(r, a, n));
      context_.runner.execute(r, place, a, planned.with_next ? &planned + 1 : nullptr);
    }
    if (!is_certain && !go_on(r, n)) return false;
    if (n < begin_) return true;
    meeting m(*this, r, n, accumulation);
    bool const has_updated = operations(m).end();
    if (has_updated) m.end_update();
    return has_updated || accumulation + 1 < order_.accumulations();
  }
  /// After the early part of step n: waits for the outcome of the step before, and returns whether
  /// that step was right. All later actions depend on the last stage's first backward, so they have
  /// to wait for the outcome anyway.
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
  /// Waits until a step is given, or until there will be no more steps; returns whether the step is
  /// given.
  bool is_given(int r, long step) {
    require(r, await(available_, count(step + 1)));
    int const available = available_.now();
    long const given = available == ended ? steps_.given() : begin_ + available;
    if (given > std::exchange(ranks_[r].known, given)) expect(r);
    return step < given;
  }
  /// Expects the values that are certain to come. These are the values of all free steps that are
  /// given; of confirmed steps up to the first that is not judged; and of the early part of the
  /// next step, unless the rank is careful.
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
  void expect_reports(long n) {
    if constexpr (streams) reports_.expect(count(n));
  }
  /// The end of rank r's steps: waits until all that was sent by the rank and to it has arrived.
  void end_segment(int r) {
    if constexpr (streams) {
      require(r, boundaries_.end(r, failed()));
      if (int const n = measured_[r].now(); n > 0) require(r, reports_.sent(r, n - 1, failed()));
    }
  }
  /// The meeting of a rank at the end of an accumulation of step n: it waits for counters of the
  /// ranks on which the rank depends. Averages of parameters are updated once the step is
  /// confirmed.
  class meeting {
   public:
    static constexpr unsigned later = run_fact::has_averages;

    meeting(flow_ranks& flow, int r, long n, int accumulation)
        : flow_(flow), r_(r), n_(n), accumulation_(accumulation) {}
    meeting(flow_ranks& flow, int r, long n)
        : meeting(flow, r, n, flow.order_.accumulations() - 1) {}

    int rank() const { return r_; }
    job const& of() const { return accumulation().of; }
    waited await_holders() { return flow_.await_holders(r_, n_, accumulation_); }
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
    /// The facts, with is_sound. Unless the rank is careful, the step is assumed to be sound, and
    /// not to be clipped.
    unsigned judge(unsigned facts) {
      rank_state& me = flow_.ranks_[r_];
      double factor = of().update.gradient_scale;
      if (me.is_careful) {
        if (!flow_.judge(r_, n_)) return facts;
        factor = flow_.at(n_).outcome().factor;
        me.is_careful = factor != of().update.gradient_scale;
        flow_.expect(r_);
      }
      begin_update(factor);
      return facts | run_fact::is_sound;
    }
    double factor() const { return factor_; }

    /// Begins the rank's update, by gradients times a factor; end_update() ends the update.
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
    flow_accumulation const& accumulation() const {
      return flow_.at(n_).accumulation(accumulation_);
    }
    /// Waits for a rank that has another place of a shared parameter, if that rank is in this
    /// process. For a rank of another process the transfer of the parameter waits.
    void await_other(int other, progress& of, long step) {
      if (flow_.context_.place.has(other)) flow_.require(r_, flow_.await(of, flow_.count(step)));
    }

    flow_ranks& flow_;
    int r_;
    long n_;
    int accumulation_;
    double factor_ = 1;
    long start_ = 0;
  };
  auto operations(meeting& m) { return step_operations(context_, m.rank(), m.of(), m); }
  /// Ends the actions of an accumulation on rank r, and waits until all holders of the rank's
  /// chunks have ended theirs.
  waited await_holders(int r, long n, int accumulation) {
    int const number = accumulations_before(n, accumulation + 1);
    if constexpr (!Transport::copies)
      at(n).accumulation(accumulation).for_each_missing(d_, [&](int h, int last) {
        if (d_.holder[h].rank == r)
          for (milestone m : {milestone::forward, milestone::input_gradient, milestone::release})
            context_.transport.publish(h, m, last);
      });
    done_[r].publish(number);
    waited all = waited::done;
    for (int h = 0; h < d_.holders(); ++h)
      if (d_.chunk[d_.holder[h].chunk].rank == r && all == waited::done)
        all = await(done_[d_.holder[h].rank], number);
    return all;
  }
  /// Notes the squared norms that rank r has measured in step n, and the losses, and reports both
  /// to other processes.
  void report(int r, long n, job const& j) {
    flow_step& s = at(n);
    parameter_operations<T, Transport> const& parameters = context_.parameters;
    order_.for_chunks_of(r, [&](int c) {
      for (int i = 0; i < 2 * d_.chunk[c].parameters.count; ++i)
        s.squares_of(d_, c)[i] = parameters.squares_of(c)[i];
    });
    if (r == order_.last_rank()) s.set_losses(parameters.losses(r, j));
    s.add_period(context_.now() - ranks_[r].begun, context_.ranks[r].waited);
    if constexpr (streams) require(r, reports_.send(r, count(n), s, failed()));
  }
  /// Updates the averages of rank r's parameters after step n, unless this was done before.
  ///
  /// needs: the step is confirmed
  void average(int r, long n) {
    meeting m(*this, r, n);
    if (weights_.takes_average(r, n)) operations(m).average();
  }

  rank_context<T, Transport>& context_;
  pipeline_description const& d_;
  flow_steps& steps_;
  flow_order order_;
  bool is_free_;
  // By rank, counted in accumulations of the segment. begun: weights and sums of the rank's chunks
  // are ready for all their holders. done: the rank's actions are done.
  heap_array<progress> begun_, done_;
  // By rank, counted in steps of the segment: gradients joined; measured; weights updated.
  heap_array<progress> joined_, measured_, updated_;
  heap_array<rank_state> ranks_;
  flow_weights<T, Transport> weights_;
  flow_records<T, Transport> records_;
  boundary_flow<Transport> boundaries_;
  step_reports<Transport> reports_;
  step_outcomes outcomes_;
  job const before_all_{.what = job::kind::train};  // the job of ranks before their first step
  progress available_;                              // steps given to ranks
  progress ended_, news_;                           // ranks at the segment's end; see news()
  long begin_ = 0;                                  // the segment's first step
};

}  // namespace pp::detail
PIPE_OPTIMIZED_END
