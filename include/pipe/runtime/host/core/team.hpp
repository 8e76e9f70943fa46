// SPDX-License-Identifier: BSL-1.0
//
// The threads of a rank, which divide the rank's kernels: the rank's own thread and, with
// HostThreads<N>, N - 1 helpers. Between launches helpers wait as ranks do: they spin, then sleep.
#pragma once

#include <exception>

#include <pipe/base/config.hpp>
#include <pipe/base/heap_array.hpp>
#include <pipe/base/thread.hpp>
#include <pipe/runtime/host/core/first_failure.hpp>
#include <pipe/runtime/host/core/pinning.hpp>
#include <pipe/transport/waiting.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp::detail {

/// A fork-join pool. Between assemble() and destruction its size is constant and no memory is
/// allocated.
///
/// law: `part` p runs on the same thread in every run(), so the part's data stay in the cache of
///      one core
/// needs: run() is called by the thread that called assemble()
class team {
 public:
  team() = default;
  [[gnu::cold]] team(int size, std::chrono::nanoseconds spin, int first_core) {
    assemble(size, spin, first_core);
  }
  team(team const&) = delete;
  team& operator=(team const&) = delete;
  ~team() { dismiss(); }

  /// Starts the helpers. Called once, on the rank's own thread. `first_core`: the first of the
  /// cores to which the threads are bound, or -1.
  ///
  /// throws: std::system_error if a thread cannot be started; no helper remains then
  [[gnu::cold]] void assemble(int size, std::chrono::nanoseconds spin, int first_core) {
    spin_ = spin;
    first_core_ = first_core;
    helpers_ = heap_array<thread>(size - 1);
    try {
      for (; size_ < size; ++size_)
        helpers_[size_ - 1] =
            thread([](void* self, int part) { static_cast<team*>(self)->help(part); }, this, size_);
    } catch (...) {
      dismiss();
      throw;
    }
    // Last, because threads inherit the affinity of the thread that starts them.
    if (first_core >= 0) detail::pin_this_thread(first_core);
  }

  int size() const { return size_; }

  /// Whether the calling thread is one of the helpers.
  bool is_own_thread() const {
    for (thread const& t : helpers_)
      if (t.is_this()) return true;
    return false;
  }

  /// Calls work(part) for every part in [0, size()), each on its own thread and part 0 on the
  /// calling thread, and returns when all have finished. Rethrows the first exception of any part.
  ///
  /// law: the writes of all parts are visible to the caller afterwards
  template <class Work>
  void run(Work const& work) {
    run_all(&work, [](void const* w, int part) { (*static_cast<Work const*>(w))(part); });
  }

 private:
  /// run() without the type of the work. The helpers see work_ and part_of_ because
  /// begun_.advance() comes after both are written.
  PIPE_ONE_COPY void run_all(void const* work, void (*part_of)(void const*, int)) {
    // Without helpers there is nothing to hand over, and an exception passes as it is.
    if (size_ == 1) return part_of(work, 0);
    work_ = work;
    part_of_ = part_of;
    done_.reset();
    begun_.advance();
    attempt(0);
    done_.wait(size_ - 1, {spin_, no_deadline});
    failure_.rethrow();
  }

  // ---- the thread of a helper ----

  /// The loop of helper number `part`: waits for the next run or the end, does its part, reports.
  [[gnu::cold]] void help(int part) {
    if (first_core_ >= 0) detail::pin_this_thread(first_core_ + part);
    for (int seen = 0;;) {
      seen = detail::progress::after(seen);
      begun_.wait(seen, {spin_, no_deadline});
      // dismiss() has set it.
      if (part_of_ == nullptr) return;
      attempt(part);
      done_.add();
    }
  }
  /// Runs one part. The first exception of all parts is kept, so that the other threads finish
  /// their parts.
  void attempt(int part) {
    try {
      part_of_(work_, part);
    } catch (...) {
      failure_.set(std::current_exception());
    }
  }

  /// Ends and joins the helpers.
  [[gnu::cold]] void dismiss() {
    part_of_ = nullptr;
    begun_.advance();
    for (thread& t : helpers_) t.join();
    size_ = 1;
  }

  int size_ = 1, first_core_ = -1;
  std::chrono::nanoseconds spin_{};
  heap_array<thread> helpers_;
  /// begun_: the number of runs so far, and one for the end. done_: the number of helpers that have
  /// finished this run.
  detail::progress begun_, done_;
  void const* work_ = nullptr;
  void (*part_of_)(void const* work, int part) = nullptr;  // null: helpers exit
  first_failure failure_;                                  ///< of this run
};

}  // namespace pp::detail
PIPE_OPTIMIZED_END
