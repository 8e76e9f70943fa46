// SPDX-License-Identifier: BSL-1.0
//
// Waiting between threads. A thread spins for some tens of microseconds, because a hand-off between
// running ranks takes far less. Then it parks in the kernel, because on a busy machine spinning
// threads take the cores that the awaited thread needs. A wait within a run ends with a failure of
// another thread or at a deadline; between runs a parked thread is not woken.
#pragma once

#include <atomic>
#include <climits>
#include <shared_mutex>  // has the clocks and durations of <chrono> without its calendar

#if defined(__linux__)
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>
#endif

#include <pipe/base/config.hpp>
#include <pipe/base/thread.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp {

namespace transports {

/// Limits of a wait: the time to spin before parking, and the deadline. Only time in which the
/// process ran counts, so that a suspended program (Ctrl-Z, a debugger) does not time out when it
/// resumes.
struct patience {
  /// Time of polling before the thread parks; 0: it parks at once.
  std::chrono::nanoseconds spin{30'000};
  std::chrono::milliseconds deadline{300'000};
};

/// Outcome of a wait.
///
/// failed: the failure flag is set. too_long: the deadline has passed.
enum class waited : unsigned char { done, failed, too_long };

/// Deadline of an unlimited wait.
inline constexpr auto no_deadline = std::chrono::milliseconds::max();

/// Set by the first rank that fails; it ends all waits of the run.
using failure_flag = std::atomic<bool>;

}  // namespace transports

namespace detail {

using namespace transports;

/// A counter that only grows during a run, published by one thread and awaited by others. Its
/// arithmetic is modulo 2^32: after INT_MAX comes INT_MIN, and comparisons are by signed
/// difference.
///
/// law: what the publisher wrote before `publish(n)` is visible to every thread that sees n
class alignas(64) progress {
 public:
  /// n + 1 modulo 2^32, without signed overflow.
  static int after(int n) { return static_cast<int>(static_cast<unsigned>(n) + 1u); }

  int now() const { return value_.load(std::memory_order_acquire); }
  /// Sets the counter. To be called only while no thread waits. The store is relaxed: the caller
  /// orders it before the next wait, for instance by publishing another counter.
  void reset(int n = 0) { value_.store(n, std::memory_order_relaxed); }

  /// Sets the counter to n and wakes parked threads. Both accesses are seq_cst: a thread that parks
  /// increments parked_ before it reads the counter, so one of the two threads sees the other's
  /// write.
  void publish(int n) {
    value_.store(n, std::memory_order_seq_cst);
    if (parked_.load(std::memory_order_seq_cst) > 0) wake();
  }
  /// Adds 1. needs: no other thread changes the counter
  void advance() { publish(after(now())); }
  /// Adds 1; unlike publish() and advance(), add() may be called by any number of threads at once.
  void add() {
    value_.fetch_add(1, std::memory_order_seq_cst);
    if (parked_.load(std::memory_order_seq_cst) > 0) wake();
  }
  /// Subtracts 1 unless the counter has reached n. Returns whether it did. Either all threads see n
  /// or none ever does.
  bool withdraw(int n) {
    int seen = value_.load(std::memory_order_seq_cst);
    while (!reached(seen, n))
      if (value_.compare_exchange_weak(seen, seen - 1, std::memory_order_seq_cst)) return true;
    return false;
  }
  /// Waits until the counter is at least n. Returns earlier if `failed` is set, or at the deadline.
  waited wait(int n, patience const& limits, failure_flag const& failed) {
    return reached(now(), n) ? waited::done : wait_long(n, limits, &failed);
  }
  /// Waits until the counter is at least n, or for the deadline. Without a failure flag to poll, a
  /// parked thread is not woken until the counter changes.
  waited wait(int n, patience const& limits) {
    return reached(now(), n) ? waited::done : wait_long(n, limits, nullptr);
  }
  /// Wakes all parked threads.
  void wake() {
#if defined(__linux__)
    syscall(SYS_futex, reinterpret_cast<int*>(&value_), FUTEX_WAKE_PRIVATE, INT_MAX, nullptr,
            nullptr, 0);
#else
    value_.notify_all();
#endif
  }

 private:
  /// Whether now >= n, modulo 2^32: differences stay far below 2^31.
  static bool reached(int now, int n) {
    return static_cast<int>(static_cast<unsigned>(now) - static_cast<unsigned>(n)) >= 0;
  }
  /// The slow path: spins, then sleeps in slices. Only the time of slices counts towards the
  /// deadline.
  PIPE_ONE_COPY waited wait_long(int n, patience const& limits, failure_flag const* failed) {
    auto const start = std::chrono::steady_clock::now();
    while (std::chrono::steady_clock::now() - start < limits.spin)
      // 32 polls for each reading of the clock.
      for (int i = 0; i < 32; ++i) {
        if (reached(now(), n)) return waited::done;
        relax();
      }
    parked_.fetch_add(1, std::memory_order_seq_cst);
    waited outcome = waited::done;
    // A longer deadline counts as no deadline: in nanoseconds it might overflow.
    bool const ends = limits.deadline < std::chrono::hours(1'000'000);
    std::chrono::nanoseconds left = std::chrono::nanoseconds::max();
    if (ends) left = limits.deadline;
    for (int seen = value_.load(); !reached(seen, n); seen = value_.load()) {
      if (failed != nullptr && failed->load(std::memory_order_acquire))
        outcome = waited::failed;
      else if (left.count() <= 0)
        outcome = waited::too_long;
      if (outcome != waited::done) break;
      // The flag may be set between this check and the sleep, with no wake-up after it: so the
      // sleep is short.
      std::chrono::nanoseconds const slice =
          failed != nullptr && left > longest_sleep ? longest_sleep : left;
      auto const slept_from = std::chrono::steady_clock::now();
      park(seen, slice);
      if (!ends) continue;
      std::chrono::nanoseconds const passed = std::chrono::steady_clock::now() - slept_from;
      // Time beyond the slice does not count: the process was stopped, or had no core.
      left -= passed < slice ? passed : slice;
    }
    parked_.fetch_sub(1, std::memory_order_seq_cst);
    return outcome;
  }
  /// Tells the core that this is a spin loop, which leaves its sibling hyper-thread more resources.
  static void relax() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
  /// Sleeps while the counter is `seen`, for at most `slice`; nanoseconds::max(): without limit.
  void park(int seen, std::chrono::nanoseconds slice) {
#if defined(__linux__)
    timespec const most{slice.count() / 1'000'000'000, slice.count() % 1'000'000'000};
    bool const endless = slice == std::chrono::nanoseconds::max();
    syscall(SYS_futex, reinterpret_cast<int*>(&value_), FUTEX_WAIT_PRIVATE, seen,
            endless ? nullptr : &most, nullptr, 0);
#else
    // Without a futex only a wait without limit can sleep until the counter changes; others poll.
    if (slice == std::chrono::nanoseconds::max())
      value_.wait(seen);
    else
      sleep_for(50'000);
#endif
  }

  /// The longest time for which a parked thread can miss a failure.
  static constexpr std::chrono::nanoseconds longest_sleep{20'000'000};
  /// The counter; also the word on which threads park.
  std::atomic<int> value_{0};
  /// Threads that may be parked: publish() makes no system call if there are none.
  std::atomic<int> parked_{0};
};

}  // namespace detail

}  // namespace pp
PIPE_OPTIMIZED_END
