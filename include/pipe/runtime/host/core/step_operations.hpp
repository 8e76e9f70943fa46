// SPDX-License-Identifier: BSL-1.0
//
// The end of a step on the thread of a rank: the operations of runtime/step_end.hpp, and a meeting,
// which decides when ranks wait for each other between the operations. Steps that end at a barrier
// and steps that overlap differ only in their meeting: barrier_meeting, flow_ranks::meeting.
#pragma once

#include <pipe/base/config.hpp>
#include <pipe/optim/clip.hpp>
#include <pipe/runtime/host/core/activity.hpp>
#include <pipe/runtime/host/core/rank_context.hpp>
#include <pipe/runtime/job.hpp>
#include <pipe/runtime/step_end.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp::detail {

/// The operations of rank r at the end of job j. A meeting of the rank has:
///
///     later               facts whose operations the owner of the meeting executes later
///     await_holders()     waits until all ranks that hold this rank's chunks are done with j
///     await_gradients()   waits until the gradients of shared parameters are complete elsewhere
///     await_values()      waits until the values of shared parameters are final elsewhere
///     gather(facts)       makes losses and squared norms visible where the step is judged
///     judge(facts)        the facts, with run_fact::is_sound if the rank is to update
///     factor()            the factor of gradients in the update; known after judge()
///
/// needs: the arguments of the constructor live as long
template <class T, class Transport, class Meeting>
class step_operations {
 public:
  step_operations(rank_context<T, Transport>& owner, int r, job const& j, Meeting& meeting)
      : context_(owner), r_(r), j_(j), meeting_(meeting) {}

  /// Executes step_end. Returns whether the rank has updated.
  bool end() {
    auto const meet = [this] { meeting_.await_gradients(); };
    return run(step_end, facts(), meet) & run_fact::is_sound;
  }
  /// Executes step_end from the update on, for a step that was judged before.
  void update() {
    run(step_end, facts() | run_fact::is_sound, [] {}, first_of_update);
  }
  /// Executes copies_follow. was_written: parameters were changed from outside
  void renew_copies(bool was_written) {
    auto const meet = [this] { meeting_.await_values(); };
    run(copies_follow, facts() | (was_written ? run_fact::was_written : 0u), meet);
  }
  /// Updates the averages of parameters, of a step whose meeting leaves them for later.
  void average() { execute(step_op::average, 0); }

 private:
  unsigned facts() const { return facts_of(context_.d, j_) & ~Meeting::later; }
  /// Executes the lines of a program from number `first` on, with meet() for each barrier.
  template <int Lines, class Meet>
  unsigned run(step_line const (&lines)[Lines], unsigned known, Meet const& meet, int first = 0) {
    auto const each = [&](step_op op, unsigned facts) {
      if (op != step_op::barrier) return execute(op, facts);
      meet();
      return facts;
    };
    return run_lines(lines, known, each, first);
  }
  unsigned execute(step_op op, unsigned facts) {
    rank_worker<T, Transport>& me = context_.ranks[r_];
    parameter_operations<T, Transport>& of = context_.parameters;
    auto const sharing = context_.runner.sharing(r_, j_);
    auto const require = [this](waited outcome) { context_.require(r_, outcome); };
    auto const updating = [this](auto const& use) { context_.updates.during(j_.step, use); };
    switch (op) {
      case step_op::accumulate:
        me.doing.change(activity::kind::meets, 0, context_.now());
        require(meeting_.await_holders());
        if (j_.part.replicas > 1) me.doing.change(activity::kind::adds, 0, context_.now());
        require(me.sums.finish());
        require(of.add_up_losses(r_, j_, me.sums));
        break;
      case step_op::barrier: break;  // run() has called meet()
      case step_op::sum_ties: of.sum_ties(r_, me.threads, sharing); break;
      case step_op::measure: require(of.measure(r_, me.threads, j_, me.sums)); break;
      case step_op::gather: meeting_.gather(facts); break;
      case step_op::judge: return meeting_.judge(facts);
      case step_op::update:
        me.doing.change(activity::kind::updates, 0, context_.now());
        updating([&] { of.update(r_, me.threads, j_, meeting_.factor()); });
        break;
      case step_op::share: updating([&] { require(of.share(r_, me.sums)); }); break;
      case step_op::average: updating([&] { of.average(r_, me.threads, j_); }); break;
      case step_op::commit: updating([&] { of.commit(r_, j_); }); break;
      case step_op::transpose: updating([&] { of.transpose(r_, me.threads); }); break;
      case step_op::copy_ties: of.copy_ties(r_, me.threads, sharing); break;
    }
    return facts;
  }

  rank_context<T, Transport>& context_;
  int r_;
  job const& j_;
  Meeting& meeting_;
};

/// Renews the copies of rank r's parameters after these have changed, before a run.
template <class T, class Transport, class Meeting>
void renew_copies(rank_context<T, Transport>& owner, int r, job const& j, Meeting& meeting) {
  step_operations(owner, r, j, meeting).renew_copies(owner.copies.was_written);
  owner.parameters.share_weights(r, owner.ranks[r].threads, owner.runner.sharing(r, j));
}

/// The meeting of a rank at the end of a run that all ranks end together: at barriers, the last of
/// which comes before any update. The start of the next run serves as the barrier before copies are
/// read.
template <class T, class Transport>
class barrier_meeting {
 public:
  static constexpr unsigned later = 0;

  barrier_meeting(rank_context<T, Transport>& owner, int r, job const& j)
      : context_(owner), r_(r), j_(j) {}

  waited await_holders() { return context_.runner.link(r_, j_).await_holders(); }
  void await_gradients() { context_.runner.pass_barrier(r_, ++barriers_); }
  void await_values() {}
  void gather(unsigned facts) {
    context_.parameters.gather(j_, context_.runner.sharing(r_, j_));
    if (facts & run_fact::trains) context_.runner.pass_barrier(r_, ++barriers_);
  }
  /// Only a run with an update is judged here; for other runs executor::collect_result computes the
  /// outcome.
  unsigned judge(unsigned facts) {
    if (!(facts & run_fact::updates)) return facts;
    outcome_ = context_.parameters.judge(r_, j_);
    return facts | (context_.parameters.is_sound(r_, j_, outcome_) ? run_fact::is_sound : 0u);
  }
  double factor() const { return outcome_.factor; }

 private:
  rank_context<T, Transport>& context_;
  int r_;
  job const& j_;
  int barriers_ = 0;
  gradient_outcome outcome_;
};

}  // namespace pp::detail
PIPE_OPTIMIZED_END
