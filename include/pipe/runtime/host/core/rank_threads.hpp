// SPDX-License-Identifier: BSL-1.0
//
// The threads of the ranks of this process, one for each, and the thread that calls the trainer,
// which gives them work and watches them meanwhile.
#pragma once

#include <exception>
#include <system_error>

#include <pipe/base/config.hpp>
#include <pipe/base/error.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/runtime/host/core/activity.hpp>
#include <pipe/runtime/host/core/rank_context.hpp>
#include <pipe/runtime/host/core/run_watch.hpp>
#include <pipe/runtime/job.hpp>
#include <pipe/transport/waiting.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp::detail {

/// One thread for each rank of this process. Threads live as long as the object; between two pieces
/// of work they are parked.
///
/// needs: the context lives longer
template <class T, transport Transport>
class rank_threads {
  using context = rank_context<T, Transport>;
  using worker = rank_worker<T, Transport>;

 public:
  /// Starts the threads; each creates the team and the arena of its rank.
  ///
  /// watched: the settings as they were given
  [[gnu::cold]] rank_threads(context& of, executor_settings const& watched)
      : context_(of), watch_(watched) {
    try {
      context_.for_each_rank([this](int r) { start(r); });
      run([this](int r) { context_.assemble(r); }, [] {});
    } catch (...) {
      stop();
      throw;
    }
  }
  rank_threads(rank_threads const&) = delete;
  rank_threads& operator=(rank_threads const&) = delete;
  ~rank_threads() { stop(); }

  /// Calls work(rank) on the threads of all ranks, and meanwhile() on this one. Rethrows the first
  /// exception of any when all have stopped. Times count on.
  template <class Work, class Meanwhile>
  void each_rank(Work const& work, Meanwhile const& meanwhile) {
    context_.transport.reset();
    run(work, meanwhile);
  }
  template <class Work>
  void each_rank(Work const& work) {
    each_rank(work, [] {});
  }
  /// As each_rank, once the transport has been reset.
  template <class Work, class Meanwhile>
  void run(Work const& work, Meanwhile const& meanwhile) {
    work_ = {&work, [](void const* w, int r) { (*static_cast<Work const*>(w))(r); }};
    start_.advance();
    try {
      meanwhile();
    } catch (...) {
      context_.fail(std::current_exception());
    }
    finished_.wait(context_.place.ranks, {{}, no_deadline});
    finished_.reset();
    context_.failure.rethrow();
  }

  /// In meanwhile(): waits until a counter has reached n, or all ranks have finished. Throws, or
  /// returns why, if no rank makes progress.
  void watch(progress& counter, int n, job const& j) {
    if (auto const why = why_stopped(counter, n, j)) std::rethrow_exception(why);
  }
  std::exception_ptr watch_all(job const& j) {
    return why_stopped(finished_, context_.place.ranks, j);
  }
  /// A run has ended well.
  void note(job const& j, double seconds) { watch_.note(j, seconds); }

  /// Whether the calling thread belongs to a rank or its team.
  [[gnu::cold]] bool is_own_thread() const {
    for (worker const& r : context_.ranks)
      if (r.own.is_this() || r.threads.is_own_thread()) return true;
    return false;
  }

 private:
  std::exception_ptr why_stopped(progress& counter, int n, job const& j) {
    auto const time = [this] { return context_.now(); };
    return watch_.wait(counter, n, context_.ranks, context_.place, j, time);
  }
  [[gnu::cold]] void start(int r) {
    try {
      context_.ranks[r].own = thread(
          [](void* self, int rank) { static_cast<rank_threads*>(self)->serve(rank); }, this, r);
    } catch (std::system_error const& e) {
      throw_error<error>({"rank ", r, ": cannot start its thread: ", e.what()});
    }
  }
  [[gnu::cold]] void stop() {
    work_ = {};
    start_.advance();
    for (worker& r : context_.ranks) r.own.join();
  }
  /// The thread of rank r.
  [[gnu::cold]] void serve(int r) {
    for (int seen = 0;;) {
      seen = progress::after(seen);
      start_.wait(seen, {context_.settings.waiting.spin, no_deadline});
      if (work_.call == nullptr) return;
      try {
        work_.call(work_.of, r);
      } catch (...) {
        context_.fail(std::current_exception());
      }
      context_.ranks[r].doing.change(activity::kind::nothing, 0, context_.now());
      finished_.add();
    }
  }

  context& context_;
  run_watch watch_;
  progress start_, finished_;
  /// The work that ranks are given; none: threads end.
  struct {
    void const* of = nullptr;
    void (*call)(void const* of, int rank) = nullptr;
  } work_;
};

}  // namespace pp::detail
PIPE_OPTIMIZED_END
