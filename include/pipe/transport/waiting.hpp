// SPDX-License-Identifier: BSL-1.0
//
// The wait of a thread for another: it spins for some tens of microseconds, because a hand-off
// between running ranks takes far less, and then parks in the kernel, because spinning threads on a
// busy machine steal the time they wait for. A wait within a run ends with a failure of another
// thread or with a deadline; an idle thread is not woken at all.
#pragma once

#include <atomic>
#include <climits>
#include <thread>  // has the clocks and durations of <chrono> without its calendar

#if defined(__linux__)
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>
#endif

#include <pipe/base/config.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp {

/// How long to spin before parking, and how long to wait at all: time that the process ran, so that
/// a program that was stopped (Ctrl-Z, a debugger) goes on where it was.
struct patience {
  std::chrono::nanoseconds spin{30'000};
  std::chrono::milliseconds deadline{300'000};
};

/// How a wait has ended.
enum class waited : unsigned char { done, failed, too_long };

/// The deadline of a wait that has none.
inline constexpr auto no_deadline = std::chrono::milliseconds::max();

/// Set by the first rank that fails; all waits of a run end then.
using failure_flag = std::atomic<bool>;

namespace detail {

/// A number that only grows during a run, published by one thread and awaited by others. Beyond the
/// largest int it goes on with the least.
///
/// law: what the publisher wrote before `publish(n)` is visible to every thread that sees n
class alignas(64) progress {
 public:
  static int after(int n) { return static_cast<int>(static_cast<unsigned>(n) + 1u); }

  int now() const { return value_.load(std::memory_order_acquire); }
  /// Only while no thread waits.
  void reset(int n = 0) { value_.store(n, std::memory_order_relaxed); }

  void publish(int n) {
    value_.store(n, std::memory_order_seq_cst);
    if (parked_.load(std::memory_order_seq_cst) > 0) wake();
  }
  void advance() { publish(after(now())); }
  /// For counting arrivals by several threads.
  void add() {
    value_.fetch_add(1, std::memory_order_seq_cst);
    if (parked_.load(std::memory_order_seq_cst) > 0) wake();
  }
  /// Takes one arrival back, unless all `n` are there: either all threads see n, or none ever does.
  bool withdraw(int n) {
    int seen = value_.load(std::memory_order_seq_cst);
    while (!reached(seen, n))
      if (value_.compare_exchange_weak(seen, seen - 1, std::memory_order_seq_cst)) return true;
    return false;
  }
  /// Returns when the number is at least n; before that if a thread has failed, or after the
  /// deadline.
  waited wait(int n, patience const& limits, failure_flag const& failed) {
    return reached(now(), n) ? waited::done : wait_long(n, limits, &failed);
  }
  /// The same with no failure to look for: a parked thread sleeps until the number changes, or the
  /// deadline.
  waited wait(int n, patience const& limits) {
    return reached(now(), n) ? waited::done : wait_long(n, limits, nullptr);
  }
  void wake() {
#if defined(__linux__)
    syscall(SYS_futex, reinterpret_cast<int*>(&value_), FUTEX_WAKE_PRIVATE, INT_MAX, nullptr,
            nullptr, 0);
#endif
  }

 private:
  static bool reached(int now, int n) {
    return static_cast<int>(static_cast<unsigned>(now) - static_cast<unsigned>(n)) >= 0;
  }
  PIPE_ONE_COPY waited wait_long(int n, patience const& limits, failure_flag const* failed) {
    auto const start = std::chrono::steady_clock::now();
    while (std::chrono::steady_clock::now() - start < limits.spin)
      for (int i = 0; i < 32; ++i) {
        if (reached(now(), n)) return waited::done;
        relax();
      }
    parked_.fetch_add(1, std::memory_order_seq_cst);
    waited outcome = waited::done;
    bool const ends = limits.deadline < std::chrono::hours(1'000'000);
    std::chrono::nanoseconds left = std::chrono::nanoseconds::max();
    if (ends) left = limits.deadline;
    for (int seen = value_.load(); !reached(seen, n); seen = value_.load()) {
      if (failed != nullptr && failed->load(std::memory_order_acquire))
        outcome = waited::failed;
      else if (left.count() <= 0)
        outcome = waited::too_long;
      if (outcome != waited::done) break;
      // A failure may come between the look at it and the sleep, and wake no thread: so that sleep
      // is short.
      std::chrono::nanoseconds const slice =
          failed != nullptr && left > longest_sleep ? longest_sleep : left;
      auto const slept_from = std::chrono::steady_clock::now();
      park(seen, slice);
      if (!ends) continue;
      std::chrono::nanoseconds const passed = std::chrono::steady_clock::now() - slept_from;
      left -= passed < slice ? passed
                             : slice;  // beyond the slice the process was stopped, or had no core
    }
    parked_.fetch_sub(1, std::memory_order_seq_cst);
    return outcome;
  }
  static void relax() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
  /// Sleeps while the number is `seen`, for at most `slice`; nanoseconds::max(): until it changes.
  void park(int seen, std::chrono::nanoseconds slice) {
#if defined(__linux__)
    timespec const most{slice.count() / 1'000'000'000, slice.count() % 1'000'000'000};
    bool const endless = slice == std::chrono::nanoseconds::max();
    syscall(SYS_futex, reinterpret_cast<int*>(&value_), FUTEX_WAIT_PRIVATE, seen,
            endless ? nullptr : &most, nullptr, 0);
#else
    (void)seen, (void)slice;
    std::this_thread::sleep_for(std::chrono::microseconds(50));
#endif
  }

  static constexpr std::chrono::nanoseconds longest_sleep{20'000'000};
  std::atomic<int> value_{0};
  std::atomic<int> parked_{0};
};

}  // namespace detail

}  // namespace pp
PIPE_OPTIMIZED_END
