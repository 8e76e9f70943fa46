// SPDX-License-Identifier: BSL-1.0
//
// How a thread waits for another: it spins for some tens of microseconds, because a hand-off between running ranks takes
// far less, and then parks in the kernel, because spinning threads on a busy machine steal the time they wait for. No wait is
// without end: each has a deadline and ends when somebody reports a failure.
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

namespace pp {

/// How long to spin before parking, and how long to wait at all.
struct patience {
  std::chrono::nanoseconds spin{30'000};
  std::chrono::milliseconds deadline{300'000};
};

enum class waited : unsigned char { done, failed, too_long };

/// Of a thread that has nothing to do until it is called.
inline patience without_end(std::chrono::nanoseconds spin) { return {spin, std::chrono::hours(1'000'000)}; }

/// Set by the first rank that fails; everybody who waits gives up then.
using failure_flag = std::atomic<bool>;

/// A number that only grows during a run, published by one thread and awaited by others. Beyond the largest int it goes on
/// with the least.
///
/// law: what the publisher wrote before `publish(n)` is visible to whoever sees n
class alignas(64) progress {
 public:
  static int after(int n) { return static_cast<int>(static_cast<unsigned>(n) + 1u); }

  int now() const { return value_.load(std::memory_order_acquire); }
  /// Only while nobody waits.
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
  /// Takes one arrival back, unless all `n` are there: either everybody sees n, or nobody ever does.
  bool withdraw(int n) {
    int seen = value_.load(std::memory_order_seq_cst);
    while (!reached(seen, n))
      if (value_.compare_exchange_weak(seen, seen - 1, std::memory_order_seq_cst)) return true;
    return false;
  }
  /// Returns when the number is at least n.
  waited wait(int n, patience const& limits, failure_flag const& failed) {
    return reached(now(), n) ? waited::done : wait_long(n, limits, failed);
  }
  void wake() {
#if defined(__linux__)
    syscall(SYS_futex, reinterpret_cast<int*>(&value_), FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
#endif
  }

 private:
  static bool reached(int now, int n) {
    return static_cast<int>(static_cast<unsigned>(now) - static_cast<unsigned>(n)) >= 0;
  }
  PIPE_ONE_COPY waited wait_long(int n, patience const& limits, failure_flag const& failed) {
    auto const start = std::chrono::steady_clock::now();
    while (std::chrono::steady_clock::now() - start < limits.spin)
      for (int i = 0; i < 32; ++i) {
        if (reached(now(), n)) return waited::done;
        relax();
      }
    parked_.fetch_add(1, std::memory_order_seq_cst);
    waited outcome = waited::done;
    for (int seen = value_.load(); !reached(seen, n); seen = value_.load()) {
      if (failed.load(std::memory_order_acquire))
        outcome = waited::failed;
      else if (std::chrono::steady_clock::now() - start > limits.deadline)
        outcome = waited::too_long;
      if (outcome != waited::done) break;
      park(seen);
    }
    parked_.fetch_sub(1, std::memory_order_seq_cst);
    return outcome;
  }
  static void relax() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
  /// Sleeps while the number is `seen`, for at most some milliseconds, so that failures and deadlines are noticed.
  void park(int seen) {
#if defined(__linux__)
    timespec const slice{0, 20'000'000};
    syscall(SYS_futex, reinterpret_cast<int*>(&value_), FUTEX_WAIT_PRIVATE, seen, &slice, nullptr, 0);
#else
    (void)seen;
    std::this_thread::sleep_for(std::chrono::microseconds(50));
#endif
  }

  std::atomic<int> value_{0};
  std::atomic<int> parked_{0};
};

}  // namespace pp
