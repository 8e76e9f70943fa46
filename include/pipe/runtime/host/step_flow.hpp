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
// Free steps are not taken back: a stage looks at its own numbers only.
#pragma once

#include <cstddef>
#include <exception>
#include <utility>

#include <pipe/base/config.hpp>
#include <pipe/base/heap_array.hpp>
#include <pipe/base/libm.hpp>
#include <pipe/runtime/actions.hpp>
#include <pipe/runtime/host/executor.hpp>
#include <pipe/runtime/host/flow_step.hpp>
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
  /// Ends a segment: a step was updated as it should not have been, or its numbers are not finite.
  struct step_rejected {
    long step;
  };

 public:
  explicit step_flow(machine& of)
      : m_(of), d_(of.description()), is_free_(d_.rank[0].flow != nullptr), ready_(d_.ranks),
        measured_(d_.ranks), updated_(d_.ranks), ranks_(d_.ranks) {
    for (int r = 0; r < d_.ranks; ++r)
      if (int const n = 3 + steps_ahead(r); n > most_) most_ = n;
    for (int c = 0; c < d_.chunks; ++c) turns_ = turns_of(turns_, d_.chunk[c].holders);
    steps_ = heap_array<flow_step>(most_ + 1);
    for (flow_step& s : steps_) s.assemble(d_);
  }

  /// Trains from step number `first` on, counted from 0, on the mini-batches of next(job&), which
  /// prepares the job of the next step, or returns false after the last; its arrays are copied.
  /// done(result) is called for each step in turn, and returns whether to go on; both on the
  /// calling thread. Returns the number of steps.
  ///
  /// throws: what next and done throw, after the steps that had begun; as executor::run
  template <class Next, class Done>
  long run(long first, Next const& next, Done const& done) {
    begin_ = given_ = seen_ = first;
    began_ = std::chrono::steady_clock::now();
    for (rank_state& r : ranks_) r.updated = r.averaged = first;
    if (m_.stale_ || m_.updated_ || m_.versions_ != version_state::known)
      m_.each_rank([&](int r) {
        m_.renew(r);
        if (m_.versions_ == version_state::unknown)
          for_chunks_of(r, [&](int c) { versions().spread(d_.chunk[c]); });
        else if (m_.versions_ == version_state::written)
          m_.parameters_.complete_versions(r, m_.ranks_[r].threads);
      });
    m_.versions_ = version_state::known;
    m_.stale_ = m_.updated_ = false;
    newest_at_first_ = first;
    std::exception_ptr failure;
    while (rejected_ < 0 && !failure && (begin_ < given_ || takes_more_)) {
      begin_segment();
      try {
        m_.each_rank([&](int r) { advance(r); }, [&] { feed(next, done); });
        if (judged() < given_) judge_last();
        see_judged(done);
        begin_ = given_;
      } catch (step_rejected const& of) {
        see_judged(done);
        reject(of.step, done);
      } catch (...) {
        failure = std::current_exception();
        stop_at_one_step();
        see_judged(done);
      }
    }
    m_.each_rank([&](int r) {
      if (seen_ > first) average(r, seen_ - 1);
      for_chunks_of(r, [&](int c) { versions().bring_newest_forward(d_.chunk[c]); });
    });
    if (d_.tie_count > 0) m_.updated_ = true;
    if (failure) std::rethrow_exception(failure);
    if (user_failure_) std::rethrow_exception(user_failure_);
    return seen_ - first;
  }
  /// The job of the step that was not sound, if one was: it changed nothing.
  job const* rejected() const { return rejected_ < 0 ? nullptr : &at(rejected_).of; }

 private:
  /// What only the rank's own thread uses, and the caller between segments.
  struct alignas(64) rank_state {
    long updated = 0, averaged = 0;  // steps
    bool is_careful = false;         // waits for the verdict before it updates
  };
  static constexpr int ended = 1 << 30;  // as a number of given steps: there will be no more

  /// Step n, while it is in progress.
  flow_step& at(long n) { return steps_[n % steps_.size()]; }
  flow_step const& at(long n) const { return steps_[n % steps_.size()]; }
  /// The actions of rank r in a period, and how many steps ahead of it they are at most.
  view<action> actions_of(int r) const {
    rank_description const& plan = d_.rank[r];
    return is_free_ ? view<action>{plan.flow, plan.flow_count}
                    : view<action>{plan.training, plan.training_count};
  }
  int steps_ahead(int r) const {
    int most = 0;
    for (action const& a : actions_of(r))
      if (int const n = a.micro_batch / d_.micro_batches; n > most) most = n;
    return most;
  }
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
  /// use(number) for the chunks of rank r.
  template <class Use>
  void for_chunks_of(int r, Use use) const {
    for (int c = 0; c < d_.chunks; ++c)
      if (d_.chunk[c].rank == r) use(c);
  }
  int last_rank() const { return d_.chunk[d_.chunks - 1].rank; }
  waited await(progress& p, int n) { return p.wait(n, m_.waits(), m_.failure_.flag()); }

  // ---- the calling thread ----

  void begin_segment() {
    for (progress& p : ready_) p.reset();
    for (progress& p : measured_) p.reset();
    for (progress& p : updated_) p.reset();
    judged_.reset(), available_.reset(), ended_.reset();
    next_number_ = 0;
    for (long n = begin_; n < given_; ++n) at(n).number(d_, turns_, next_number_);
    available_.publish(takes_more_ ? count(given_) : ended);
  }
  /// Gives ranks steps while there is room, and shows results, until all ranks have ended.
  template <class Next, class Done>
  void feed(Next const& next, Done const& done) {
    for (;;) {
      int const news = news_.now();
      while (takes_more_ && given_ - seen_ < most_)
        if (take(next)) available_.publish(count(given_));
      if (!takes_more_ && available_.now() != ended) available_.publish(ended);
      if (is_free_) judge_updated();
      if (see_judged(done)) continue;
      if (ended_.now() == m_.place_.ranks) return;
      m_.watch(news_, progress::after(news), at(seen_).of);
    }
  }
  /// Takes the next mini-batch, if there is one.
  template <class Next>
  bool take(Next const& next) {
    job j;
    try {
      takes_more_ = next(j);
    } catch (...) {
      user_failure_ = std::current_exception();
      takes_more_ = false;
    }
    if (!takes_more_) return false;
    flow_step& s = at(given_);
    s.take(d_, j);
    s.number(d_, turns_, next_number_);
    ++given_;
    return true;
  }
  /// Shows the results of steps that were judged sound. Returns whether there were any.
  template <class Done>
  bool see_judged(Done const& done) {
    bool any = false;
    for (; seen_ < judged(); ++seen_, any = true) {
      flow_step const& s = at(seen_);
      step_result r;
      r.loss = s.loss, r.gradient_norm = s.norm;
      r.seconds = double(s.end - judged_at_) * 1e-9;
      r.bubble = r.seconds > 0 ? double(s.waited.load()) * 1e-9 / (r.seconds * d_.ranks) : 0;
      judged_at_ = s.end;
      try {
        if (!done(r)) takes_more_ = false;
      } catch (...) {
        user_failure_ = std::current_exception();
        takes_more_ = false;
      }
    }
    return any;
  }
  /// Notes free steps that all ranks have updated.
  void judge_updated() {
    for (long n = judged(); n < given_; ++n) {
      for (progress const& p : updated_)
        if (p.now() < count(n + 1)) return;
      confirm(n, at(n).outcome());
    }
  }
  /// Judges the last step of all, which no backward follows.
  ///
  /// throws: step_rejected
  void judge_last() {
    if (is_free_) return judge_updated();
    gradient_outcome const o = at(given_ - 1).outcome();
    if (!at(given_ - 1).is_as_updated(o)) throw step_rejected{given_ - 1};
    confirm(given_ - 1, o);
  }
  /// Takes a step back that was not updated as it should be, and updates it again if its numbers
  /// are finite.
  template <class Done>
  void reject(long n, Done const& done) {
    if (is_free_) return break_at(n, "the loss or a gradient was not finite in");
    m_.each_rank([&](int r) { take_back(r, n); });
    gradient_outcome const o = at(n).outcome();
    if (!at(n).is_sound(o)) return void(rejected_ = n);
    m_.each_rank([&](int r) {
      update(r, n, o.factor);
      average(r, n);
      ranks_[r].is_careful = true;
    });
    confirm(n, o);
    see_judged(done);
    begin_ = n + 1;
  }
  /// After a failure of free steps: stages have weights of different steps.
  void break_at(long n, char const* how) {
    m_.mark_broken(how, n + 1);
    takes_more_ = false;
    rejected_ = n;
  }
  /// After a failure: all ranks are brought to the last step that all of them have updated.
  void stop_at_one_step() {
    if (is_free_) {
      judge_updated();
      return break_at(judged(), "a rank failed in");
    }
    long least = given_;
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
    takes_more_ = false;
  }
  void take_back(int r, long to) {
    if (ranks_[r].updated <= to) return;
    for_chunks_of(r, [&](int c) { versions().take_back(d_.chunk[c]); });
    ranks_[r].updated = to;
  }

  // ---- verdicts ----

  void confirm(long n, gradient_outcome const& o) {
    at(n).norm = o.norm;
    at(n).end = std::chrono::nanoseconds(std::chrono::steady_clock::now() - began_).count();
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
    for (long n = begin_ - steps_ahead(r);; ++n) {
      if (n >= begin_ && !is_given(r, n)) return;
      me.count = 0, me.waited = 0;
      if (n > begin_) take_ties(r, n);
      bool is_confirmed = is_free_ || n == begin_;
      for (action a : actions_of(r)) {
        long const step = n + a.micro_batch / d_.micro_batches;
        a.micro_batch %= d_.micro_batches;
        if (step < begin_ || !is_given(r, step)) continue;
        flow_step& s = at(step);
        if (samples_in(d_, s.of, a.micro_batch) == 0) continue;
        if (int const owner = d_.chunk[a.chunk].rank; owner != r && n > begin_)
          m_.require(r, await(updated_[owner], count(n)));
        int const slot = slot_of(a.chunk, n + a.version);
        run_place const place{s.of, s.first, d_.chunk[a.chunk].shift_of(slot)};
        if (!is_confirmed && makes_input_gradient(a.kind)) {
          if (r == last_rank())
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
        m_.runner_.execute(r, place, a);
      }
      if (n >= begin_) end_step(r, n);
    }
  }
  /// Waits for a step, or for the end of all; returns whether it is there.
  bool is_given(int r, long step) {
    m_.require(r, await(available_, count(step + 1)));
    return available_.now() != ended || step < given_;
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
    for_chunks_of(r, [&](int c) {
      for (int i = 0; i < 2 * d_.chunk[c].parameter_count; ++i)
        s.squares_of(d_, c)[i] = m_.parameters_.squares_of(c)[i];
    });
    if (r == last_rank()) {
      m_.require(r, m_.parameters_.add_up_losses(r, s.of, me.leaves));
      s.loss = m_.parameters_.loss(r, s.of);
    }
    s.waited.fetch_add(me.waited, std::memory_order_relaxed);
    if (is_free_ && !is_finite_on(r, s)) throw step_rejected{n};
    measured_[r].publish(count(n + 1));
    double factor = s.of.gradient_scale;
    if (ranks_[r].is_careful) {
      for (progress& p : measured_) m_.require(r, await(p, count(n + 1)));
      gradient_outcome const o = s.outcome();
      if (!s.is_sound(o)) throw step_rejected{n};
      ranks_[r].is_careful = o.factor != factor;
      factor = o.factor;
      if (r == last_rank()) confirm(n, o);
    }
    me.doing.change(activity::kind::updates, 0, m_.now());
    update(r, n, factor);
  }
  void update(int r, long n, double factor) {
    flow_step const& s = at(n);
    team& all = m_.ranks_[r].threads;
    m_.updating(n + 1, [&] {
      for_chunks_of(r, [&](int c) { versions().begin(d_.chunk[c], slot_of(c, n + 1)); });
      m_.parameters_.update(r, all, s.of, factor);
      if (d_.has_buffers) m_.parameters_.commit(r, s.of);
      m_.parameters_.transpose(r, all);
    });
    ranks_[r].updated = n + 1;
    updated_[r].publish(count(n + 1));
    if (!is_free_) return;
    average(r, n);
    news_.add();
  }
  /// Whether the numbers of rank r in a step are finite.
  bool is_finite_on(int r, flow_step& s) const {
    bool finite = r != last_rank() || libm::isfinite(s.loss);
    for_chunks_of(r, [&](int c) {
      for (int i = 0; i < d_.chunk[c].parameter_count; ++i)
        finite = finite && libm::isfinite(s.squares_of(d_, c)[2 * i]);
    });
    return finite;
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
  bool is_free_;  // or each is confirmed: see step_overlap
  // Steps in progress: one that is judged, the next one, one that waits, and those that forwards
  // are ahead of. A step is known until the next one has been judged as well.
  int most_ = 0;
  heap_array<flow_step> steps_;
  // By rank, counted in steps of the segment: gradients complete; measured; weights updated.
  heap_array<progress> ready_, measured_, updated_;
  heap_array<rank_state> ranks_;
  progress available_, judged_;  // steps given to ranks; found sound, by one thread
  progress ended_, news_;        // ranks at the segment's end; something for the calling thread
  long begin_ = 0;               // the segment's first step
  long given_ = 0, seen_ = 0;    // steps
  long newest_at_first_ = 0;     // the version that was in slot 0
  int next_number_ = 0;
  int turns_ = 1;
  long judged_at_ = 0;
  std::chrono::steady_clock::time_point began_;  // times of verdicts count from it
  bool takes_more_ = true;
  long rejected_ = -1;  // a step
  std::exception_ptr user_failure_;
};

}  // namespace pp::detail
PIPE_OPTIMIZED_END
