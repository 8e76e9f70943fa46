// SPDX-License-Identifier: BSL-1.0
//
// The parts of a search that run at the same time.
#pragma once

#include <atomic>
#include <exception>

#include <pipe/base/function_ref.hpp>
#include <pipe/base/signals_blocked.hpp>
#include <pipe/base/thread.hpp>
#include <pipe/schedule/scratch.hpp>

namespace pp::detail {

/// Numbered tasks of which the first one that reaches a goal makes all later ones needless.
class search_tasks {
 public:
  explicit search_tasks(int count) : count_(count), reached_(count) {}

  /// The lowest number of a task that has reached the goal, or the number of tasks.
  int reached() const { return reached_.load(std::memory_order_relaxed); }
  /// Whether the result of a task is not needed any more.
  bool needless(int task) const { return reached() < task; }
  void reach(int task) {
    for (int now = reached(); task < now && !reached_.compare_exchange_weak(now, task);) {
    }
  }

  /// Calls work(task) for every task, on up to `threads` threads, of which the calling thread is
  /// one.
  ///
  /// law: every task up to reached() has run to its end, whatever the number of threads
  /// throws: what the first task that failed threw
  void run(int threads, function_ref<void(int)> work) {
    work_ = &work;
    threads = threads < count_ ? threads : count_;
    auto others = scratch<thread>(threads > 1 ? threads - 1 : 0);
    {
      signals_blocked const inherited;
      for (int i = 0; i + 1 < threads; ++i) try {
          others.item[i] = thread(&take, this, i);
        } catch (std::exception const&) {
          break;  // the system has no more threads: those that run do the work
        }
    }
    take(this, 0);
    for (int i = 0; i + 1 < threads; ++i) others.item[i].join();
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  static void take(void* self, int) {
    auto& all = *static_cast<search_tasks*>(self);
    for (int task; (task = all.next_++) < all.count_;) {
      if (all.needless(task)) continue;
      try {
        (*all.work_)(task);
      } catch (...) {
        if (!all.failed_.exchange(true)) all.failure_ = std::current_exception();
      }
    }
  }

  int count_;
  function_ref<void(int)> const* work_ = nullptr;
  std::atomic<int> next_{0}, reached_;
  std::atomic<bool> failed_{false};
  std::exception_ptr failure_;
};

}  // namespace pp::detail
