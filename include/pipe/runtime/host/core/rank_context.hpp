// SPDX-License-Identifier: BSL-1.0
//
// The ranks of this process with all that their work needs: threads, memory, the transport, the
// operations on parameters, the first failure. An executor owns a rank_context; steps that end at a
// barrier and steps that overlap both work on it.
#pragma once

#include <exception>
#include <new>
#include <string>
#include <system_error>

#include <pipe/base/config.hpp>
#include <pipe/base/error.hpp>
#include <pipe/base/heap_array.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/runtime/host/core/action_runner.hpp>
#include <pipe/runtime/host/core/activity.hpp>
#include <pipe/runtime/host/core/arena.hpp>
#include <pipe/runtime/host/core/backend_calls.hpp>
#include <pipe/runtime/host/core/first_failure.hpp>
#include <pipe/runtime/host/core/parameters.hpp>
#include <pipe/runtime/host/core/pinning.hpp>
#include <pipe/runtime/host/core/run_watch.hpp>
#include <pipe/runtime/job.hpp>
#include <pipe/runtime/transfers.hpp>
#include <pipe/runtime/update_guard.hpp>
#include <pipe/transport/transport.hpp>
#include <pipe/transport/waiting.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp::detail {

/// The state of the copies of parameters: transposed copies, later places of shared parameters,
/// versions.
struct copies_state {
  /// Where steps overlap, the slots of versions before the newest. unknown: not to be read.
  /// written: trained parameters are from a file, everything else is not set. known: as the last
  /// steps that overlap left the slots.
  enum class version : unsigned char { unknown, written, known };
  version versions = version::unknown;
  long oldest_version = 0;   ///< slots of versions before this one have copies of this version
  bool was_written = true;   ///< parameters were changed from outside
  bool was_updated = false;  ///< parameters were changed by the last run

  bool is_behind() const { return was_written || was_updated; }
};

/// The ranks of this process, each with a thread that lives as long as the object and is parked
/// between two tasks. A rank that is the only one works in the thread of the caller instead, unless
/// settings ask for a watch, since a thread cannot watch itself. T: element type of values and
/// parameters. A method that takes a rank is called on the thread in which that rank works.
template <class T, transport Transport>
class rank_context {
  using worker = rank_worker<T, Transport>;
  static constexpr bool streams = stream_transport<Transport>;

 public:
  pipeline_description const d;
  backend_calls<T> const calls;
  process_place const place = Transport::place(d.ranks);
  executor_settings const settings;
  Transport transport{d.ranks,
                      streams ? count_rank_streams(d) : d.holders(),
                      {settings.waiting.spin, streams ? settings.waiting.deadline : no_deadline}};
  parameter_operations<T, Transport> parameters{d, calls, transport};
  heap_array<worker> ranks = heap_array<worker>(d.ranks);
  first_failure failure;
  action_runner<T, Transport> runner{d, calls, transport, parameters, ranks, failure.flag()};
  update_guard updates;
  copies_state copies;
  run_watch watch;

  /// Starts the threads; each creates the team and the arena of its rank.
  [[gnu::cold]] rank_context(pipeline_description const& of, backend_calls<T> const& backend,
                             executor_settings const& given)
      : d(of), calls(backend),
        settings(fit_to_cores(given, place.ranks * d.threads, place.neighbours)), watch(given) {
    try {
      each_rank([this](int r) { assemble(r); });
    } catch (...) {
      stop();
      throw;
    }
  }
  rank_context(rank_context const&) = delete;
  rank_context& operator=(rank_context const&) = delete;
  ~rank_context() { stop(); }

  /// Calls work(rank) on the threads of all ranks, and meanwhile() on the calling thread. Rethrows
  /// the first exception of any of these threads when all ranks have stopped. Times count on.
  template <class Work, class Meanwhile>
  void each_rank(Work const& work, Meanwhile const& meanwhile) {
    transport.reset();
    run(work, meanwhile);
  }
  template <class Work>
  void each_rank(Work const& work) {
    transport.reset();
    run_watched(work, [] {});
  }
  /// As each_rank, for a caller that has reset the transport and whose `watch` only watches.
  template <class Work, class Watch>
  void run_watched(Work const& work, Watch const& watches) {
    if (!works_in_caller_) return run(work, watches);
    serve_once(place.first_rank, work);
    failure.rethrow();
  }
  /// As each_rank, for a caller that has reset the transport.
  template <class Work, class Meanwhile>
  void run(Work const& work, Meanwhile const& meanwhile) {
    if (!has_threads_) {
      for_each_rank([this](int r) { start(r); });
      has_threads_ = true;
    }
    work_ = {&work, [](void const* w, int r) { (*static_cast<Work const*>(w))(r); }};
    start_.advance();
    try {
      meanwhile();
    } catch (...) {
      fail(std::current_exception());
    }
    finished_.wait(place.ranks, {{}, no_deadline});
    finished_.reset();
    failure.rethrow();
  }
  /// In meanwhile(): waits until a counter has reached n. Returns the reason if no rank makes
  /// progress, else null.
  std::exception_ptr watch_until(progress& counter, int n, job const& j) {
    return watch.wait(counter, n, ranks, place, j, part_of_rows(j, d.micro_batches),
                      [this] { return now(); });
  }
  std::exception_ptr watch_all(job const& j) { return watch_until(finished_, place.ranks, j); }
  /// Whether the calling thread belongs to a rank or its team.
  [[gnu::cold]] bool is_own_thread() const {
    for (worker const& r : ranks)
      if (r.own.is_this() || r.threads.is_own_thread()) return true;
    return false;
  }
  /// use(rank) for the ranks of this process.
  template <class Use>
  void for_each_rank(Use const& use) const {
    for (int r = place.first_rank; r < place.first_rank + place.ranks; ++r) use(r);
  }
  /// A scope in which other processes are told the activities of the ranks here.
  auto during_run() {
    if constexpr (streams) {
      auto const tell = [](void const* self) {
        rank_context const& c = *static_cast<rank_context const*>(self);
        return activities(c.ranks, c.place);
      };
      return transport.during({"in a run", tell, this});
    } else {
      return 0;
    }
  }
  /// Throws unless a wait of rank r is done.
  void require(int r, waited outcome) { runner.require(r, outcome); }
  /// Nanoseconds from the start of the run.
  long now() const { return runner.now(); }

 private:
  /// Creates the team and the arena of rank r.
  [[gnu::cold]] void assemble(int r) {
    worker& me = ranks[r];
    // Processes that share cores take consecutive ranges of cores.
    int const core = (place.neighbour * place.ranks + r - place.first_rank) * d.threads;
    arena_end const end = arena_end_of<T, Transport>(d, r, place);
    try {
      me.threads.assemble(d.threads, settings.waiting.spin, settings.pin ? core : -1);
      me.memory = arena(end.end);
      parameters.set_memory(r, me.memory.data(), place, end);
      me.sums.assemble(
          {d, calls, transport, place, r, me.memory.data(), end, me.threads, failure.flag()},
          parameters.shards(r));
    } catch (std::system_error const& e) {
      throw_error<error>({"rank ", r, ": cannot start ", d.threads - 1, " threads: ", e.what()});
    } catch (std::bad_alloc const&) {
      throw_error<error>({"rank ", r, ": no memory for an arena of ", end.end, " bytes, of ",
                          d.bytes(), " that the plan needs in all"});
    }
  }
  /// Fails the run: all waits end, and other processes are told.
  [[gnu::cold]] void fail(std::exception_ptr const& e) {
    bool const is_first = failure.set(e);
    transport.wake_all();
    if constexpr (streams)
      if (is_first) transport.announce(what_of(e));
  }
  [[gnu::cold]] void start(int r) {
    try {
      ranks[r].own = thread(
          [](void* self, int rank) { static_cast<rank_context*>(self)->serve(rank); }, this, r);
    } catch (std::system_error const& e) {
      throw_error<error>({"rank ", r, ": cannot start its thread: ", e.what()});
    }
  }
  [[gnu::cold]] void stop() {
    work_ = {};
    start_.advance();
    for (worker& r : ranks) r.own.join();
  }
  /// The thread of rank r.
  [[gnu::cold]] void serve(int r) {
    for (int seen = 0;;) {
      seen = progress::after(seen);
      start_.wait(seen, {settings.waiting.spin, no_deadline});
      if (work_.call == nullptr) return;
      serve_once(r, [this](int rank) { work_.call(work_.of, rank); });
      finished_.add();
    }
  }
  template <class Work>
  void serve_once(int r, Work const& work) {
    try {
      work(r);
    } catch (...) {
      fail(std::current_exception());
    }
    ranks[r].doing.change(activity::kind::nothing, 0, now());
  }
  /// Whether a program has set no time, no report and no core of a rank's own.
  static bool is_unwatched(executor_settings const& s) {
    executor_settings const usual;
    return s.waiting.deadline == usual.waiting.deadline && s.on_timeout == usual.on_timeout &&
           s.slow.factor == usual.slow.factor && s.slow.at_least == usual.slow.at_least &&
           s.slow.report == usual.slow.report && !s.pin;
  }

  bool const works_in_caller_ = !streams && place.ranks == 1 && is_unwatched(settings);
  bool has_threads_ = false;
  progress start_, finished_;
  /// The work that ranks are given; null: threads end.
  struct {
    void const* of = nullptr;
    void (*call)(void const* of, int rank) = nullptr;
  } work_;
};

}  // namespace pp::detail
PIPE_OPTIMIZED_END
