// SPDX-License-Identifier: BSL-1.0
//
// The executor of a pipeline in this process: one thread per rank walks the rank's list of actions,
// waits for the dependencies of each, runs the chunk's program on the micro-batch and publishes the
// result. At the end of a training run all ranks pass a barrier, compute the same gradient norm and
// the same decision whether the step is sound, and update their own parameters.
#pragma once

#include <atomic>
#include <exception>
#include <new>
#include <string>
#include <system_error>

#include <pipe/base/config.hpp>
#include <pipe/base/error.hpp>
#include <pipe/base/heap_array.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/runtime/actions.hpp>
#include <pipe/runtime/host/action_runner.hpp>
#include <pipe/runtime/host/activity.hpp>
#include <pipe/runtime/host/arena.hpp>
#include <pipe/runtime/host/backend_calls.hpp>
#include <pipe/runtime/host/first_failure.hpp>
#include <pipe/runtime/host/leaf_work.hpp>
#include <pipe/runtime/job.hpp>
#include <pipe/runtime/host/parameters.hpp>
#include <pipe/runtime/host/pinning.hpp>
#include <pipe/runtime/host/rank_link.hpp>
#include <pipe/runtime/host/run_watch.hpp>
#include <pipe/runtime/host/team.hpp>
#include <pipe/runtime/step_end.hpp>
#include <pipe/runtime/transfers.hpp>
#include <pipe/transport/in_process/in_process.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp::detail {

/// The ranks' threads and memory. T: element type of values and parameters.
template <class T, transport Transport = detail::in_process>
class executor {
 public:
  [[gnu::cold]] executor(pipeline_description const& d, backend_calls<T> const& calls,
                         executor_settings const& settings)
      : d_(d), calls_(calls), place_(Transport::place(d.ranks)),
        settings_(fit_to_cores(settings, place_.ranks * d.threads, place_.neighbours)),
        watch_(settings),
        transport_(d.ranks, streams ? count_rank_streams(d) : d.holders(),
                   {settings_.waiting.spin, streams ? settings_.waiting.deadline : no_deadline}),
        parameters_(d_, calls_, transport_), ranks_(d.ranks),
        runner_(d_, calls_, transport_, parameters_, ranks_, failure_.flag()) {
    try {
      for (int r = place_.first_rank; r < place_.first_rank + place_.ranks; ++r) start(r);
      finished_.wait(place_.ranks, {{}, no_deadline});
      rethrow_failure();
      if constexpr (streams) open_streams(d_, transport_);
    } catch (...) {
      stop();
      throw;
    }
  }
  executor(executor const&) = delete;
  executor& operator=(executor const&) = delete;
  ~executor() { stop(); }

  /// Throws if a run has left the parameters half updated.
  void check() const {
    if (char const* const how = broken_by_.load())
      throw_error<error>({"this trainer is broken: ", how, " step ", failed_update_.load(),
                          ", and some parameters are updated, others are not: load a checkpoint in "
                          "another trainer"});
  }
  /// A load of states was cut short after a step: check() throws from now on.
  [[gnu::cold]] void spoil(long step) { mark_broken("a load was cut short after", step); }
  /// Whether the calling thread belongs to a rank or its team.
  [[gnu::cold]] bool is_own_thread() const {
    for (worker const& r : ranks_)
      if (r.own.is_this() || r.threads.is_own_thread()) return true;
    return false;
  }

  /// On the calling thread of each_rank(): waits until a counter has reached n, and fails all
  /// ranks if none makes progress.
  void watch(progress& counter, int n, job const& j) {
    auto const time = [this] { return now(); };
    if (auto why = watch_.wait(counter, n, ranks_, place_.first_rank, place_.ranks, j, time))
      std::rethrow_exception(why);
  }
  patience const& waits() const { return settings_.waiting; }

  /// Runs a job on all ranks. Rethrows the first exception of any rank when all have stopped;
  /// parameters are then unchanged, unless the optimizer threw: then check() throws from now on.
  step_result run(job const& j) {
    [[maybe_unused]] auto const saying = during_run();
    begin_run(j, calls_.optimizer_settings, transport_);
    job_ = j;
    runner_.begin();
    start_.advance();
    auto const time = [this] { return now(); };
    if (auto why =
            watch_.wait(finished_, place_.ranks, ranks_, place_.first_rank, place_.ranks, j, time))
      give_up(why);
    rethrow_failure();
    if constexpr (streams) end_run(d_, j, transport_);
    stale_ = false;
    updated_ = j.what == job::kind::train && j.updates;
    if (updated_) versions_ = version_state::unknown;
    return collect_result();
  }
  /// Calls work(rank) on the threads of all ranks, and meanwhile() on this one. Rethrows the first
  /// exception of any when all have stopped. Times count on.
  template <class Work, class Meanwhile>
  void each_rank(Work const& work, Meanwhile const& meanwhile) {
    transport_.reset();
    job_ = job{.what = job::kind::train};
    work_ = {&work, [](void const* w, int r) { (*static_cast<Work const*>(w))(r); }};
    start_.advance();
    try {
      meanwhile();
    } catch (...) {
      fail(std::current_exception());
    }
    finished_.wait(place_.ranks, {{}, no_deadline});
    work_ = {};
    rethrow_failure();
  }
  template <class Work>
  void each_rank(Work const& work) {
    each_rank(work, [] {});
  }

  /// Parameters were written from outside: transposed copies are renewed before the next run.
  void parameters_changed() { stale_ = true, versions_ = version_state::unknown; }
  /// Where steps overlap: whether older versions of the weights are there; they were written.
  bool has_versions() const { return versions_ != version_state::unknown; }
  void versions_changed() { versions_ = version_state::written, oldest_version_ = 0; }
  /// From now on older versions are not read.
  void forget_versions() { versions_ = version_state::unknown; }

  Transport& transport() { return transport_; }
  rank_shards_of<T, Transport> const& shards(int r) const { return parameters_.shards(r); }
  pipeline_description const& description() const { return d_; }
  char* memory(int chunk) const { return ranks_[d_.chunk[chunk].rank].memory.data(); }
  long bytes(int rank) const { return ranks_[rank].memory.bytes(); }
  /// Divided parameters of a chunk: see value_windows.
  auto& windows(int chunk) { return ranks_[d_.chunk[chunk].rank].leaves.windows(); }

  /// The actions that rank r executed in the last run, in order.
  executed_action const* executed(int rank) const { return runner_.executed(rank); }
  int executed_count(int rank) const { return ranks_[rank].count; }
  /// The start of that run.
  std::chrono::steady_clock::time_point began() const { return runner_.began(); }

 private:
  template <class, class>
  friend class step_flow;
  template <class, class>
  friend class flow_weights;
  using worker = rank_worker<T, Transport>;
  static constexpr bool streams = stream_transport<Transport>;

  /// Lets other processes know what the ranks here do.
  auto during_run() {
    auto const tell = [](void const* self) {
      executor const& e = *static_cast<executor const*>(self);
      return activities(e.ranks_, e.place_.first_rank, e.place_.ranks);
    };
    if constexpr (streams)
      return transport_.during({"in a run", tell, this});
    else
      return 0;
  }
  [[gnu::cold]] void start(int r) {
    try {
      ranks_[r].own = thread(
          [](void* self, int rank) { static_cast<executor*>(self)->run_rank(rank); }, this, r);
    } catch (std::system_error const& e) {
      throw_error<error>({"rank ", r, ": cannot start its thread: ", e.what()});
    }
  }

  [[gnu::cold]] void stop() {
    job_.what = job::kind::stop;
    start_.advance();
    for (worker& r : ranks_) r.own.join();
  }

  /// Fails the run, unless all ranks have arrived at its last barrier: their updates are not
  /// interrupted. Returns when all ranks are done; one that is stuck in a kernel is waited for.
  [[gnu::cold]] void give_up(std::exception_ptr const& why) {
    int const last = count_barriers(facts_of(d_, job_));
    if (last == 0 || transport_.cancel_barrier(last)) fail(why);
    finished_.wait(place_.ranks, {{}, no_deadline});
  }
  /// Rethrows the first failure of a run whose ranks are all done.
  void rethrow_failure() { finished_.reset(), failure_.rethrow(); }

  [[gnu::cold]] step_result collect_result() {
    step_result o;
    o.seconds = double(now()) * 1e-9;
    watch_.note(job_, o.seconds);
    if (job_.what == job::kind::infer) return o;
    long waited = 0;
    for (worker const& r : ranks_) waited += r.waited;
    o.bubble = o.seconds > 0 ? double(waited) * 1e-9 / (o.seconds * place_.ranks) : 0;
    o.losses = parameters_.losses(place_.first_rank, job_);
    o.loss = job_.further.sum_of(o.losses.items);
    if (job_.what == job::kind::train)
      o.gradient_norm = parameters_.judge(place_.first_rank, job_).norm;
    return o;
  }

  [[gnu::cold]] void run_rank(int r) {
    attempt(r, &executor::allocate);
    for (int seen = 0;;) {
      seen = detail::progress::after(seen);
      start_.wait(seen, {settings_.waiting.spin, no_deadline});
      if (job_.what == job::kind::stop) return;
      attempt(r, work_.call != nullptr ? &executor::run_work : &executor::run_batch);
    }
  }
  void attempt(int r, void (executor::*what)(int, worker&)) {
    try {
      (this->*what)(r, ranks_[r]);
    } catch (...) {
      fail(std::current_exception());
    }
    ranks_[r].doing.change(activity::kind::nothing, 0, now());
    finished_.add();
  }
  /// Creates the rank's team and arena, on the rank's thread.
  [[gnu::cold]] void allocate(int r, worker& me) {
    // Processes on the same cores take consecutive ones.
    int const core = (place_.neighbour * place_.ranks + r - place_.first_rank) * d_.threads;
    arena_end const end = arena_end_of<T, Transport>(d_, r, place_);
    try {
      me.threads.assemble(d_.threads, settings_.waiting.spin, settings_.pin ? core : -1);
      me.memory = arena(end.end);
      parameters_.set_memory(r, me.memory.data(), place_, end);
      me.leaves.assemble(d_, calls_, transport_, place_, r, me.memory.data(), end,
                         parameters_.shards(r), me.threads, failure_.flag());
    } catch (std::system_error const& e) {
      throw_error<error>({"rank ", r, ": cannot start ", d_.threads - 1, " threads: ", e.what()});
    } catch (std::bad_alloc const&) {
      throw_error<error>({"rank ", r, ": no memory for an arena of ", end.end, " bytes, of ",
                          d_.bytes(), " that the plan needs in all"});
    }
  }
  [[gnu::cold]] void fail(std::exception_ptr const& e) {
    bool const is_first = failure_.set(e);
    transport_.wake_all();
    if constexpr (streams)
      if (is_first) transport_.announce(what_of(e));
  }

  void run_work(int r, worker&) { work_.call(work_.of, r); }
  void run_batch(int r, worker& me) {
    me.count = 0, me.waited = 0;
    renew(r);
    require(r, link(r).share_weights());
    runner_.batch_of(r, job_).stage_partial();
    execute_actions(r, me);
    if (job_.what != job::kind::infer) finish(r, me);
  }
  /// Renews copies of parameters that changed before this run. Its start served as the barrier.
  void renew(int r) {
    if (stale_ || updated_) renew_copies(r, ranks_[r]);
  }
  void renew_copies(int r, worker& me) {
    unsigned const facts = facts_of(d_, job_) | (stale_ ? run_fact::was_written : 0u);
    run_lines(copies_follow, facts, [&](step_op op, unsigned known) {
      if (op == step_op::copy_ties) parameters_.copy_ties(r, me.threads, runner_.sharing(r, job_));
      if (op == step_op::transpose) parameters_.transpose(r, me.threads);
      return known;
    });
    parameters_.share_weights(r, me.threads, runner_.sharing(r, job_));
  }
  /// Executes rank r's actions in order.
  void execute_actions(int r, worker& me) {
    bool const trains = job_.what == job::kind::train;
    me.leaves.begin(job_);
    if constexpr (Transport::copies) {
      rank_steps const& mine = d_.steps[r];
      detail::rank_step const* const steps = trains ? mine.training : mine.evaluation;
      int const count = trains ? mine.training_count : mine.evaluation_count;
      link(r).begin();
      for (int i = 0; i < count; ++i) {
        bool const runs = samples_in(d_, job_, steps[i].of.micro_batch) > 0;
        if (steps[i].kind == detail::step_kind::compute)
          runs ? runner_.execute(r, {job_}, steps[i].of, detail::second_of(steps + i))
               : require(r, me.leaves.skip(steps[i].of));
        else if (runs)
          runner_.run_transfer(r, job_, steps[i]);
      }
      require(r, link(r).end());
    } else {
      rank_description const& plan = d_.rank[r];
      action const* const actions = trains ? plan.training : plan.evaluation;
      int const count = trains ? plan.training_count : plan.evaluation_count;
      for (int i = 0; i < count; ++i)
        if (samples_in(d_, job_, actions[i].micro_batch) > 0)
          runner_.execute(r, {job_}, actions[i], actions[i].with_next ? actions + i + 1 : nullptr);
    }
  }
  void finish(int r, worker& me) {
    detail::gradient_outcome outcome;
    int barriers = 0;
    run_lines(step_end, facts_of(d_, job_), [&](step_op op, unsigned facts) {
      switch (op) {
        case step_op::add_leaves:
          me.doing.change(activity::kind::meets, 0, now());
          require(r, link(r).await_holders());
          if (job_.replicas > 1) me.doing.change(activity::kind::adds, 0, now());
          require(r, me.leaves.finish());
          require(r, parameters_.add_up_losses(r, job_, me.leaves));
          break;
        case step_op::barrier: runner_.pass_barrier(r, ++barriers); break;
        case step_op::sum_ties:
          parameters_.sum_ties(r, me.threads, runner_.sharing(r, job_));
          break;
        case step_op::measure:
          require(r, parameters_.measure(r, me.threads, job_, me.leaves));
          break;
        case step_op::gather:
          parameters_.gather(job_, runner_.sharing(r, job_));
          if (facts & run_fact::trains) runner_.pass_barrier(r, ++barriers);
          break;
        case step_op::judge:
          if (!(facts & run_fact::updates)) break;  // collect_result() reports the rest
          outcome = parameters_.judge(r, job_);
          if (parameters_.is_sound(r, job_, outcome)) facts |= run_fact::is_sound;
          break;
        case step_op::update:
          me.doing.change(activity::kind::updates, 0, now());
          updating(job_.step, [&] { parameters_.update(r, me.threads, job_, outcome.factor); });
          break;
        case step_op::share:
          updating(job_.step, [&] { require(r, parameters_.share(r, me.leaves)); });
          break;
        case step_op::commit: updating(job_.step, [&] { parameters_.commit(r, job_); }); break;
        case step_op::average:
          updating(job_.step, [&] { parameters_.average(r, me.threads, job_); });
          break;
        case step_op::transpose:
          updating(job_.step, [&] { parameters_.transpose(r, me.threads); });
          break;
        case step_op::copy_ties: break;  // at the start of the next run
      }
      return facts;
    });
  }
  /// Runs `use` of the update of a step; an exception from it marks the parameters as half updated.
  template <class Use>
  void updating(long step, Use const& use) {
    try {
      use();
    } catch (...) {
      mark_broken("its optimizer threw in the update of", step);
      throw;
    }
  }
  /// From now on check() throws. how: what has happened in the step, in words; of several, the
  /// first is kept
  void mark_broken(char const* how, long step) {
    long unbroken = 0;
    if (failed_update_.compare_exchange_strong(unbroken, step)) broken_by_.store(how);
  }
  rank_link<Transport> link(int r) { return runner_.link(r, job_); }
  void require(int r, waited outcome) { runner_.require(r, outcome); }
  long now() const { return runner_.now(); }

  pipeline_description d_;
  backend_calls<T> calls_;
  process_place place_;
  executor_settings settings_;
  run_watch watch_;
  Transport transport_;
  parameter_work<T, Transport> parameters_;
  heap_array<worker> ranks_;
  first_failure failure_;
  action_runner<T, Transport> runner_;
  detail::progress start_, finished_;
  std::atomic<long> failed_update_{0};           // the step whose update failed half-way; 0: none
  std::atomic<char const*> broken_by_{nullptr};  // in words
  job job_;
  /// What ranks do instead of the job, if it is set.
  struct {
    void const* of = nullptr;
    void (*call)(void const* of, int rank) = nullptr;
  } work_;
  /// Where steps overlap, of the slots of versions before the newest: not to be read; as they were
  /// written, but for what no update changes, and transposed copies; or as a flow has left them.
  enum class version_state : unsigned char { unknown, written, known };
  version_state versions_ = version_state::unknown;
  long oldest_version_ = 0;              // where older ones would be, there are copies of it
  bool stale_ = true, updated_ = false;  // parameters were changed: from outside; by the last run
};

}  // namespace pp::detail
PIPE_OPTIMIZED_END
