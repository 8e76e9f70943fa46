// SPDX-License-Identifier: BSL-1.0
//
// Steps that overlap: every rank runs the actions of one step after those of the step before, and
// updates its own weights in between, without a barrier. Weights have several versions, so that
// micro-batches in flight can go on with older ones, and an update can be taken back.
//
// Confirmed steps have the bits of steps with a barrier. The verdict on a step (global norm, and
// whether all numbers are finite) needs the gradients of all ranks. A rank updates before there is
// one, as if no clipping were needed, and runs forwards of the next step with the result. Its first
// backward of that step can only begin when the same micro-batch has been forward in all stages, so
// when all of them have updated. Then the last stage's rank judges: it sends no gradient back
// unless the step was sound. Until then all gradients are still there, so a step that has to be
// clipped is taken back and updated again.
//
// Free steps are not taken back. They also overlap over processes: see boundary_flow, step_reports.
#pragma once

#include <cstddef>
#include <exception>
#include <utility>

#include <pipe/base/config.hpp>
#include <pipe/base/heap_array.hpp>
#include <pipe/runtime/actions.hpp>
#include <pipe/runtime/host/boundary_flow.hpp>
#include <pipe/runtime/host/executor.hpp>
#include <pipe/runtime/host/flow_order.hpp>
#include <pipe/runtime/host/flow_records.hpp>
#include <pipe/runtime/host/flow_step.hpp>
#include <pipe/runtime/host/flow_steps.hpp>
#include <pipe/runtime/host/step_reports.hpp>
#include <pipe/runtime/job.hpp>
#include <pipe/transport/waiting.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp::detail {

/// Runs steps of an executor whose description keeps versions of the weights.
///
/// law: with confirmed steps, results, parameters and states have the bits of steps with a barrier,
///      and after run(), however it ends, all ranks have the weights after the same step
/// law: with free steps, run(a) and run(b) have the bits of run(a + b): versions are kept between
template <class T, class Transport>
class step_flow {
  using machine = executor<T, Transport>;
  using version_state = typename machine::version_state;
  static constexpr bool streams = stream_transport<Transport>;
  /// Ends a segment: a step was updated as it should not have been, or its numbers are not finite.
  struct step_rejected {
    long step;
  };

 public:
  explicit step_flow(machine& of)
      : m_(of), d_(of.description()), order_(d_), is_free_(order_.is_free()), ready_(d_.ranks),
        measured_(d_.ranks), updated_(d_.ranks), begun_(d_.ranks), ranks_(d_.ranks),
        steps_(d_, 3 + order_.most_steps_ahead()), records_(m_.runner_, m_.ranks_),
        boundaries_(d_, m_.transport_), reports_(d_, m_.transport_, m_.place_) {}

  /// Trains from step number `first` on, counted from 0, on the mini-batches of next(job&), which
  /// prepares the job of the next step, or returns false after the last; its arrays are copied.
  /// done(result) is called for each step in turn, and returns whether to go on; both on the
  /// calling thread. Returns the number of steps.
  ///
  /// throws: what next and done throw, after the steps that had begun; as executor::run
  template <class Next, class Done>
  long run(long first, Next const& next, Done const& done) {
    begin_ = newest_at_first_ = first;
    steps_.begin(first);
    records_.begin(first);
    for (rank_state& r : ranks_) r.updated = r.averaged = first;
    if (m_.versions_ == version_state::unknown) m_.oldest_version_ = first;
    if (m_.stale_ || m_.updated_ || m_.versions_ != version_state::known)
      m_.each_rank([&](int r) {
        m_.renew(r);
        if (m_.versions_ == version_state::unknown)
          order_.for_chunks_of(r, [&](int c) { versions().spread(d_.chunk[c]); });
        else if (m_.versions_ == version_state::written)
          m_.parameters_.complete_versions(r, m_.ranks_[r].threads);
      });
    m_.versions_ = version_state::known;
    m_.stale_ = m_.updated_ = false;
    std::exception_ptr failure;
    [[maybe_unused]] auto const saying = m_.during_run();
    typename action_runner<T, Transport>::part_of_flow const part(m_.runner_, boundaries_);
    while (rejected_ < 0 && !failure && (begin_ < steps_.given() || steps_.takes_more())) {
      begin_segment();
      try {
        m_.each_rank([&](int r) { advance(r); }, [&] { feed(next, done); });
        if (judged() < steps_.given()) judge_last();
        see_judged(next, done);
        begin_ = steps_.given();
        if (unsound_ >= 0) break_at(unsound_, "the loss or a gradient was not finite in");
      } catch (step_rejected const& of) {
        see_judged(next, done);
        reject(of.step, next, done);
      } catch (...) {
        failure = std::current_exception();
        stop_at_one_step();
        see_judged(next, done);
      }
    }
    if (!failure || !is_free_)
      m_.each_rank([&](int r) {
        if (steps_.seen() > first) average(r, steps_.seen() - 1);
        order_.for_chunks_of(r, [&](int c) { versions().bring_newest_forward(d_.chunk[c]); });
      });
    if (d_.tie_count > 0) m_.updated_ = true;
    records_.end(m_.place_, steps_.seen());
    steps_.rethrow();
    if (failure) std::rethrow_exception(failure);
    if constexpr (streams) reports_.end();
    return steps_.seen() - first;
  }
  /// The job of the step that was not sound, if one was: it changed nothing.
  job const* rejected() const { return rejected_ < 0 ? nullptr : &at(rejected_).of; }

 private:
  /// What only the rank's own thread uses, and the caller between segments.
  struct alignas(64) rank_state {
    long updated = 0, averaged = 0;  // steps
    long known = 0;                  // steps whose values it expects
    bool is_careful = false;         // waits for the verdict before it updates
  };
  static constexpr int ended = 1 << 30;  // as a number of given steps: there will be no more

  /// Step n, while it is in progress.
  flow_step& at(long n) { return steps_.at(n); }
  flow_step const& at(long n) const { return steps_.at(n); }
  /// Where a version of a chunk's weights is: at first, the newest is in slot 0. Versions before
  /// all updates are where the first one was copied to.
  int slot_of(int chunk, long version) const {
    long const slots = d_.chunk[chunk].version_slots, n = (version - newest_at_first_) % slots;
    return int(n < 0 ? n + slots : n);
  }
  /// A step's number as counters have it, which count from the segment's begin.
  int count(long n) const { return int(n - begin_); }
  long judged() const { return begin_ + judged_.now(); }
  weight_versions<T>& versions() { return m_.parameters_.versions(); }
  waited await(progress& p, int n) { return p.wait(n, m_.waits(), m_.failure_.flag()); }

  // ---- the calling thread ----

  void begin_segment() {
    for (progress& p : ready_) p.reset();
    for (progress& p : measured_) p.reset();
    for (progress& p : updated_) p.reset();
    for (progress& p : begun_) p.reset();
    judged_.reset(), available_.reset(), ended_.reset();
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
      if (ended_.now() == m_.place_.ranks) return;
      m_.watch(news_, progress::after(news), at(steps_.seen()).of);
    }
  }
  /// Gives ranks steps while there is room.
  template <class Next>
  void give(Next const& next) {
    while (steps_.take(next)) {
      long const n = steps_.given() - 1;
      if constexpr (streams) reports_.expect(count(n));
      available_.publish(count(n + 1));
      if constexpr (streams)
        reports_.compare(process_call::kinds::train, at(n).of, m_.calls_.optimizer_settings);
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
    for (int r = m_.place_.first_rank; r < m_.place_.first_rank + m_.place_.ranks; ++r)
      if (updated_[r].now() < count(n + 1)) return false;
    if constexpr (streams)
      m_.require(m_.place_.first_rank, reports_.receive(count(n), at(n), m_.failure_.flag()));
    gradient_outcome const o = at(n).outcome();
    if (!at(n).is_sound(o)) return unsound_ = n, false;
    return confirm(n, o), true;
  }
  /// Judges the last step of all, which no backward follows.
  ///
  /// throws: step_rejected
  void judge_last() {
    while (is_free_ && judge_updated()) continue;
    if (is_free_) return;
    gradient_outcome const o = at(steps_.given() - 1).outcome();
    if (!at(steps_.given() - 1).is_as_updated(o)) throw step_rejected{steps_.given() - 1};
    confirm(steps_.given() - 1, o);
  }
  /// Takes a step back that was not updated as it should be, and updates it again if its numbers
  /// are finite.
  template <class Next, class Done>
  void reject(long n, Next const& next, Done const& done) {
    m_.each_rank([&](int r) { take_back(r, n); });
    gradient_outcome const o = at(n).outcome();
    if (!at(n).is_sound(o)) return void(rejected_ = n);
    m_.each_rank([&](int r) {
      update(r, n, o.factor);
      average(r, n);
      ranks_[r].is_careful = true;
    });
    m_.each_rank([&](int r) { take_ties(r, n + 1); });
    confirm(n, o);
    see_judged(next, done);
    begin_ = n + 1;
  }
  /// After a failure of free steps: stages have weights of different steps.
  void break_at(long n, char const* how) {
    m_.mark_broken(how, n + 1);
    rejected_ = n;
  }
  /// After a failure: all ranks are brought to the last step that all of them have updated.
  void stop_at_one_step() {
    steps_.take_no_more();
    is_end_told_ = true;
    if (is_free_) {
      while (!streams && judge_updated()) continue;
      return break_at(judged(), "a rank failed in");
    }
    long least = steps_.given();
    for (rank_state const& r : ranks_)
      if (r.updated < least) least = r.updated;
    if (least > judged()) {
      gradient_outcome const o = at(least - 1).outcome();
      if (at(least - 1).is_as_updated(o))
        confirm(least - 1, o);
      else
        --least;
    }
    m_.each_rank([&](int r) { take_back(r, least); });
  }
  void take_back(int r, long to) {
    if (ranks_[r].updated <= to) return;
    order_.for_chunks_of(r, [&](int c) { versions().take_back(d_.chunk[c]); });
    ranks_[r].updated = to;
    records_.take_back(r, to);
  }

  // ---- verdicts ----

  void confirm(long n, gradient_outcome const& o) {
    steps_.confirm(n, o);
    judged_.publish(count(n + 1));
    news_.add();
  }

  // ---- the thread of a rank ----

  void advance(int r) {
    struct at_end {
      step_flow& of;
      ~at_end() { of.ended_.add(), of.news_.add(); }
    } const end{*this};
    auto& me = m_.ranks_[r];
    me.leaves.begin();
    ranks_[r].known = begin_;
    if constexpr (streams) boundaries_.begin(r);
    for (long n = begin_ - order_.steps_ahead(r);; ++n) {
      if (n >= begin_ && !is_given(r, n)) return end_segment(r, n);
      me.waited = 0;
      records_.keep(r, n + 1);
      if (n > begin_) take_ties(r, n), begun_[r].publish(count(n));
      bool is_confirmed = is_free_ || n == begin_;
      for (action a; action const& planned : order_.actions_of(r)) {
        long const step = n + planned.micro_batch / d_.micro_batches;
        a = planned, a.micro_batch %= d_.micro_batches;
        if (step < begin_ || !is_given(r, step)) continue;
        flow_step& s = at(step);
        if (samples_in(d_, s.of, a.micro_batch) == 0) continue;
        if (int const owner = d_.chunk[a.chunk].rank; owner != r && n > begin_)
          m_.require(r, await(begun_[owner], count(n)));
        int const slot = slot_for(r, a, n, step);
        run_place const place{s.of, s.first, d_.chunk[a.chunk].shift_of(slot),
                              records_.number(step)};
        a.version =
            records_.number(order_.version_of(r, a, n, ranks_[r].updated, m_.oldest_version_));
        if (!is_confirmed && makes_input_gradient(a.kind)) {
          if (r == order_.last_rank())
            judge(r, n - 1);
          else if (a.chunk == d_.chunks - 1)  // another one that holds it
            m_.require(r, await(judged_, count(n)));
          // Elsewhere this gradient comes from ranks that have gone on.
          is_confirmed = true;
          if (d_.averages) {
            m_.runner_.await(r, place, a);
            average(r, n - 1);
          }
        }
        m_.runner_.execute(r, place, a, planned.with_next ? &planned + 1 : nullptr);
      }
      if (n >= begin_) end_step(r, n);
    }
  }
  /// The slot that an action of rank r in period n reads: a forward of a later step perhaps what is
  /// predicted for its backward.
  int slot_for(int r, action const& a, long n, long step) {
    if (!d_.rank[r].predicts) return slot_of(a.chunk, n + a.version);
    bool const is_predicted =
        a.kind == action_kind::forward && step > n &&
        m_.parameters_.predict(d_.chunk[a.chunk], m_.ranks_[r].threads, step - n);
    return slot_of(a.chunk, ranks_[r].updated - is_predicted);
  }
  /// Waits for a step, or for the end of all; returns whether it is there.
  bool is_given(int r, long step) {
    m_.require(r, await(available_, count(step + 1)));
    int const available = available_.now();
    long const given = available == ended ? steps_.given() : begin_ + available;
    if constexpr (streams)
      if (given > ranks_[r].known) {
        boundaries_.expect(r, at(given - 1).next_first);
        ranks_[r].known = given;
      }
    return step < given;
  }
  /// The end of rank r's steps, before step n: waits until all that it has sent is there.
  void end_segment(int r, long n) {
    if constexpr (streams) {
      m_.require(r, boundaries_.end(r, m_.failure_.flag()));
      if (n > begin_) m_.require(r, reports_.sent(r, count(n - 1), m_.failure_.flag()));
    }
  }
  /// Judges a step that all ranks have updated, on the last stage's rank. Where its output has come
  /// from all stages, nothing is waited for.
  void judge(int r, long n) {
    if (judged() > n) return;
    for (progress& p : updated_) m_.require(r, await(p, count(n + 1)));
    gradient_outcome const o = at(n).outcome();
    if (!at(n).is_as_updated(o)) throw step_rejected{n};
    confirm(n, o);
  }
  /// The end of rank r's actions of a step: what runtime/step_end.hpp has for steps with a barrier.
  void end_step(int r, long n) {
    flow_step& s = at(n);
    auto& me = m_.ranks_[r];
    if constexpr (!Transport::copies)
      s.for_each_missing(d_, [&](int h, int last) {
        if (d_.holder[h].rank == r)
          for (milestone m : {milestone::forward, milestone::input_gradient, milestone::release})
            m_.transport_.publish(h, m, last);
      });
    ready_[r].publish(count(n + 1));
    for (int h = 0; h < d_.holders(); ++h)
      if (d_.chunk[d_.holder[h].chunk].rank == r)
        m_.require(r, await(ready_[d_.holder[h].rank], count(n + 1)));
    m_.parameters_.sum_ties(r, me.threads, [&](transfer const& x) {
      if (x.to_rank == r) m_.require(r, await(ready_[x.from_rank], count(n + 1)));
    });
    m_.require(r, m_.parameters_.measure(r, me.threads, s.of, me.leaves));
    order_.for_chunks_of(r, [&](int c) {
      for (int i = 0; i < 2 * d_.chunk[c].parameter_count; ++i)
        s.squares_of(d_, c)[i] = m_.parameters_.squares_of(c)[i];
    });
    if (r == order_.last_rank()) {
      m_.require(r, m_.parameters_.add_up_losses(r, s.of, me.leaves));
      s.loss() = m_.parameters_.loss(r, s.of);
    }
    s.waited.fetch_add(me.waited, std::memory_order_relaxed);
    if constexpr (streams) m_.require(r, reports_.send(r, count(n), s, m_.failure_.flag()));
    measured_[r].publish(count(n + 1));
    double factor = s.of.gradient_scale;
    if (ranks_[r].is_careful) {
      for (progress& p : measured_) m_.require(r, await(p, count(n + 1)));
      gradient_outcome const o = s.outcome();
      if (!s.is_sound(o)) throw step_rejected{n};
      ranks_[r].is_careful = o.factor != factor;
      factor = o.factor;
      if (r == order_.last_rank()) confirm(n, o);
    }
    me.doing.change(activity::kind::updates, 0, m_.now());
    update(r, n, factor);
  }
  void update(int r, long n, double factor) {
    flow_step const& s = at(n);
    team& all = m_.ranks_[r].threads;
    long const start = m_.now();
    m_.updating(n + 1, [&] {
      order_.for_chunks_of(r, [&](int c) { versions().begin(d_.chunk[c], slot_of(c, n + 1)); });
      m_.parameters_.update(r, all, s.of, factor);
      if (d_.has_buffers) m_.parameters_.commit(r, s.of);
      m_.parameters_.transpose(r, all);
    });
    ranks_[r].updated = n + 1;
    if (int const c = order_.first_chunk_of(r); c >= 0)
      records_.add_update(r, c, s.micro_batches(d_) - 1, n, start);
    updated_[r].publish(count(n + 1));
    if (is_free_) average(r, n), news_.add();
  }
  /// Updates the averages of parameters after a step that is confirmed, unless that is done.
  void average(int r, long n) {
    if (!d_.averages || std::exchange(ranks_[r].averaged, n + 1) > n) return;
    m_.parameters_.average(r, m_.ranks_[r].threads, at(n).of);
  }
  /// Takes shared parameters from their first places, before step n.
  void take_ties(int r, long n) {
    m_.parameters_.copy_ties(r, m_.ranks_[r].threads, [&](transfer const& x) {
      if (x.to_rank == r) m_.require(r, await(updated_[x.from_rank], count(n)));
    });
  }

  machine& m_;
  pipeline_description const& d_;
  flow_order order_;
  bool is_free_;  // or each is confirmed: see step_overlap
  // By rank, counted in steps of the segment: gradients complete; measured; weights updated; steps
  // begun with all weights renewed, the shared ones, too.
  heap_array<progress> ready_, measured_, updated_, begun_;
  heap_array<rank_state> ranks_;
  // In progress: one that is judged, the next one, one that waits, and those that forwards are
  // ahead of.
  flow_steps steps_;
  flow_records<T, Transport> records_;
  boundary_flow<Transport> boundaries_;
  step_reports<Transport> reports_;
  progress available_, judged_;  // steps given to ranks; found sound, by one thread
  progress ended_, news_;        // ranks at the segment's end; something for the calling thread
  long begin_ = 0;               // the segment's first step
  long newest_at_first_ = 0;     // the version that was in slot 0
  long rejected_ = -1;           // a step
  long unsound_ = -1;            // a free step
  bool is_end_told_ = false;     // that there will be no more steps
};

}  // namespace pp::detail
PIPE_OPTIMIZED_END
