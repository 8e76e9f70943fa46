// SPDX-License-Identifier: BSL-1.0
//
// The threads that work on one rank's kernels together: the rank's own and, with HostThreads<N>, N
// - 1 others, which wait between launches as ranks wait for each other: they spin for a while, then
// sleep.
#pragma once

#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include <pipe/base/config.hpp>
#include <pipe/base/heap_array.hpp>
#include <pipe/runtime/host/pinning.hpp>
#include <pipe/transport/waiting.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp::detail {

/// A thread that runs run(self, number): one kind of thread for all classes that have some.
[[gnu::cold]] inline std::thread start_thread(void (*run)(void* self, int number), void* self,
                                              int number) {
  return std::thread([run, self, number] { run(self, number); });
}

class team {
 public:
  team() = default;
  [[gnu::cold]] team(int size, std::chrono::nanoseconds spin, int first_core) {
    assemble(size, spin, first_core);
  }
  team(team const&) = delete;
  team& operator=(team const&) = delete;
  ~team() { dismiss(); }

  /// Calls the helpers, once, on the rank's own thread. `first_core`: the first of the cores that
  /// the threads are pinned to, or -1.
  [[gnu::cold]] void assemble(int size, std::chrono::nanoseconds spin, int first_core) {
    spin_ = spin;
    first_core_ = first_core;
    helpers_ = heap_array<std::thread>(size - 1);
    try {
      for (; size_ < size; ++size_)
        helpers_[size_ - 1] = detail::start_thread(
            [](void* self, int part) { static_cast<team*>(self)->help(part); }, this, size_);
    } catch (...) {
      dismiss();
      throw;
    }
    if (first_core >= 0)
      detail::pin_this_thread(first_core);  // last: those that it starts have the cores that it has
  }

  int size() const { return size_; }

  /// Whether the calling thread is one of the helpers.
  bool is_own_thread() const {
    for (std::thread const& t : helpers_)
      if (t.get_id() == std::this_thread::get_id()) return true;
    return false;
  }

  /// work(part) for every part in [0, size()), each on a thread of its own, part 0 on this one;
  /// returns when all are done. The first exception of any of them is thrown here.
  template <class Work>
  void run(Work const& work) {
    run_all(&work, [](void const* w, int part) { (*static_cast<Work const*>(w))(part); });
  }

 private:
  PIPE_ONE_COPY void run_all(void const* work, void (*part_of)(void const*, int)) {
    if (size_ == 1) return part_of(work, 0);
    work_ = work;
    part_of_ = part_of;
    done_.reset();
    begun_.advance();
    attempt(0);
    done_.wait(size_ - 1, {spin_, no_deadline});
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  }

  // ---- what a helper's thread does ----

  [[gnu::cold]] void help(int part) {
    if (first_core_ >= 0) detail::pin_this_thread(first_core_ + part);
    for (int seen = 0;;) {
      seen = detail::progress::after(seen);
      begun_.wait(seen, {spin_, no_deadline});
      if (part_of_ == nullptr) return;
      attempt(part);
      done_.add();
    }
  }
  void attempt(int part) {
    try {
      part_of_(work_, part);
    } catch (...) {
      std::lock_guard const lock(failure_mutex_);
      if (!failure_) failure_ = std::current_exception();
    }
  }

  [[gnu::cold]] void dismiss() {
    part_of_ = nullptr;
    begun_.advance();
    for (std::thread& t : helpers_)
      if (t.joinable()) t.join();
    size_ = 1;
  }

  int size_ = 1, first_core_ = -1;
  std::chrono::nanoseconds spin_{};
  heap_array<std::thread> helpers_;
  detail::progress begun_, done_;
  void const* work_ = nullptr;
  void (*part_of_)(void const* work, int part) = nullptr;  // null: go home
  std::mutex failure_mutex_;
  std::exception_ptr failure_;
};

}  // namespace pp::detail
PIPE_OPTIMIZED_END
