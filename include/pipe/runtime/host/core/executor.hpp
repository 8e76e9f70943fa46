// SPDX-License-Identifier: BSL-1.0
//
// The executor of a pipeline in this process: one thread per rank walks the rank's list of actions.
// It waits for the dependencies of an action, runs the chunk's program on the micro-batch and
// publishes the result. At the end of a training run all ranks pass a barrier, compute the same
// gradient norm, decide alike whether the step is sound, and update their own parameters: see
// step_operations.
#pragma once

#include <exception>

#include <pipe/base/config.hpp>
#include <pipe/runtime/actions.hpp>
#include <pipe/runtime/host/core/backend_calls.hpp>
#include <pipe/runtime/host/core/rank_context.hpp>
#include <pipe/runtime/host/core/rank_link.hpp>
#include <pipe/runtime/host/core/step_operations.hpp>
#include <pipe/runtime/job.hpp>
#include <pipe/runtime/step_end.hpp>
#include <pipe/transport/in_process/in_process.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp::detail {

/// The ranks' threads and memory, and runs that all ranks end together. T: element type of values
/// and parameters.
template <class T, transport Transport = detail::in_process>
class executor {
  using worker = rank_worker<T, Transport>;
  static constexpr bool streams = stream_transport<Transport>;

 public:
  [[gnu::cold]] executor(pipeline_description const& d, backend_calls<T> const& calls,
                         executor_settings const& settings);
  ~executor();

  /// The ranks, for steps that overlap: see step_flow.
  rank_context<T, Transport>& context() { return context_; }

  /// throws: error if a run has left the parameters half updated
  void check() const { context_.updates.check(); }
  /// Notes that a load of states was cut short after a step: check() throws from now on.
  [[gnu::cold]] void spoil(long step) { context_.updates.spoil(step); }
  /// Whether the calling thread belongs to a rank or its team.
  [[gnu::cold]] bool is_own_thread() const;

  /// Runs a job on all ranks. Rethrows the first exception of any rank when all ranks have stopped;
  /// parameters are then unchanged, unless the optimizer threw: in this case check() throws from
  /// now on.
  step_result run(job const& j);

  /// Notes that parameters were written from outside: transposed copies are renewed before the next
  /// run.
  void parameters_changed() { context_.copies.was_written = true, forget_versions(); }
  /// Where steps overlap: whether slots have older versions of the weights; notes that these were
  /// written.
  bool has_versions() const { return context_.copies.versions != version_state::unknown; }
  void versions_changed() {
    context_.copies.versions = version_state::written;
    context_.copies.oldest_version = 0;
  }
  /// Notes that older versions are not to be read from now on.
  void forget_versions() { context_.copies.versions = version_state::unknown; }

  Transport& transport() { return context_.transport; }
  rank_shards_of<T, Transport> const& shards(int r) const { return context_.parameters.shards(r); }
  pipeline_description const& description() const { return context_.d; }
  char* memory(int chunk) const { return holder(chunk).memory.data(); }
  long bytes(int rank) const { return context_.ranks[rank].memory.bytes(); }
  /// Divided parameters of a chunk: see value_windows.
  auto& windows(int chunk) { return context_.ranks[context_.d.chunk[chunk].rank].sums.windows(); }

  /// The actions that rank r executed in the last run, in order.
  executed_action const* executed(int rank) const { return context_.runner.executed(rank); }
  int executed_count(int rank) const { return context_.ranks[rank].count; }
  /// The start of the last run.
  std::chrono::steady_clock::time_point began() const { return context_.runner.began(); }

 private:
  using version_state = copies_state::version;

  worker const& holder(int chunk) const { return context_.ranks[context_.d.chunk[chunk].rank]; }

  // ---- the calling thread ----

  /// Watches the ranks. A run without progress fails, unless all ranks have arrived at its last
  /// barrier: then their updates are not interrupted, and a rank that is stuck in a kernel is
  /// waited for.
  void watch() {
    std::exception_ptr const why = context_.watch_all(job_);
    if (!why) return;
    int const last = count_barriers(facts_of(context_.d, job_));
    if (last == 0 || context_.transport.cancel_barrier(last)) std::rethrow_exception(why);
  }
  [[gnu::cold]] step_result collect_result() {
    process_place const& place = context_.place;
    parameter_operations<T, Transport> const& parameters = context_.parameters;
    step_result o;
    o.seconds = double(context_.now()) * 1e-9;
    context_.watch.note(job_, o.seconds, part_of_rows(job_, context_.d.micro_batches));
    if (job_.what == job::kind::infer) return o;
    long waited = 0;
    for (worker const& r : context_.ranks) waited += r.waited;
    o.bubble = o.seconds > 0 ? double(waited) * 1e-9 / (o.seconds * place.ranks) : 0;
    o.losses = parameters.losses(place.first_rank, job_);
    o.loss = job_.loss.further.sum_of(o.losses.items);
    if (job_.adds_gradients()) o.gradient_norm = parameters.judge(place.first_rank, job_).norm;
    return o;
  }

  // ---- the thread of a rank ----

  void run_rank(int r) {
    worker& me = context_.ranks[r];
    me.count = 0, me.waited = 0;
    barrier_meeting meeting(context_, r, job_);
    if (context_.copies.is_behind()) renew_copies(context_, r, job_, meeting);
    context_.require(r, link(r).share_weights());
    context_.runner.batch_of(r, job_).stage_partial();
    execute_actions(r, me);
    if (job_.what != job::kind::infer) step_operations(context_, r, job_, meeting).end();
  }
  /// Executes rank r's actions in order.
  void execute_actions(int r, worker& me) {
    bool const trains = job_.what == job::kind::train;
    me.sums.begin(job_);
    if constexpr (Transport::copies) {
      rank_instructions const& mine = context_.d.instructions[r];
      link(r).begin();
      for (rank_instruction const& s : trains ? mine.training : mine.evaluation) {
        bool const runs = samples_in(context_.d, job_, s.of.micro_batch) > 0;
        if (s.kind == detail::instruction_kind::compute)
          runs ? context_.runner.execute(r, {job_}, s.of, detail::second_of(&s))
               : context_.require(r, me.sums.skip(s.of));
        else if (runs)
          context_.runner.run_transfer(r, job_, s);
      }
      context_.require(r, link(r).end());
    } else {
      rank_description const& plan = context_.d.rank[r];
      for (action const& a : trains ? plan.training : plan.evaluation)
        if (samples_in(context_.d, job_, a.micro_batch) > 0)
          context_.runner.execute(r, {job_}, a, a.with_next ? &a + 1 : nullptr);
    }
  }
  rank_link<Transport> link(int r) { return context_.runner.link(r, job_); }

  rank_context<T, Transport> context_;
  job job_;
};

// Not inline, so that programs with pipe::compiled do not instantiate what these functions call.
template <class T, transport Transport>
executor<T, Transport>::executor(pipeline_description const& d, backend_calls<T> const& calls,
                                 executor_settings const& settings)
    : context_(d, calls, settings) {
  if constexpr (streams) open_streams(context_.d, context_.transport);
}
template <class T, transport Transport>
executor<T, Transport>::~executor() {}
template <class T, transport Transport>
step_result executor<T, Transport>::run(job const& j) {
  [[maybe_unused]] auto const saying = context_.during_run();
  begin_run(j, context_.calls.optimizer_settings, context_.transport);
  job_ = j;
  context_.runner.begin();
  context_.run_watched([this](int r) { run_rank(r); }, [this] { watch(); });
  if constexpr (streams) end_run(context_.d, j, context_.transport);
  copies_state& copies = context_.copies;
  copies.was_written = false;
  copies.was_updated = j.what == job::kind::train && j.update.applies;
  if (copies.was_updated) forget_versions();
  return collect_result();
}
template <class T, transport Transport>
bool executor<T, Transport>::is_own_thread() const {
  return context_.is_own_thread();
}

}  // namespace pp::detail
PIPE_OPTIMIZED_END
