// SPDX-License-Identifier: BSL-1.0
//
// Threads of the operating system, by POSIX. <thread> would bring stop tokens, streams and locales:
// a tenth of what a compiler reads with this library.
#pragma once

#include <pthread.h>
#include <unistd.h>

#if defined(__linux__)
#include <sched.h>
#endif

#include <ctime>
#include <exception>
#include <system_error>
#include <utility>

#include <pipe/base/uninterrupted.hpp>

namespace pp::detail {

/// A thread that runs a function. As std::thread, it is joined before it ends, or left to
/// itself.
class thread {
 public:
  using function = void (*)(void* self, int number);

  thread() = default;
  /// Runs run(self, number). throws: std::system_error if the system has no thread to give
  [[gnu::cold]] thread(function run, void* self, int number) {
    call* const first = new call{run, self, number};
    int const error = pthread_create(&id_, nullptr, &begin, first);
    runs_ = error == 0;
    if (runs_) return;
    delete first;
    throw std::system_error(error, std::generic_category());
  }
  thread(thread&& from) noexcept : id_(from.id_), runs_(std::exchange(from.runs_, false)) {}
  thread& operator=(thread&& from) noexcept {
    if (runs_) std::terminate();
    id_ = from.id_;
    runs_ = std::exchange(from.runs_, false);
    return *this;
  }
  ~thread() {
    if (runs_) std::terminate();
  }

  /// Waits for the end of its function, if it has one.
  [[gnu::cold]] void join() {
    if (std::exchange(runs_, false)) pthread_join(id_, nullptr);
  }
  /// Leaves it to itself: it ends with its function, or with the program.
  [[gnu::cold]] void detach() {
    if (std::exchange(runs_, false)) pthread_detach(id_);
  }
  /// Whether it is the calling thread.
  bool is_this() const { return runs_ && pthread_equal(id_, pthread_self()) != 0; }

 private:
  struct call {
    function run;
    void* self;
    int number;
  };
  static void* begin(void* first) noexcept {
    call const mine = *static_cast<call*>(first);
    delete static_cast<call*>(first);
    mine.run(mine.self, mine.number);
    return nullptr;
  }

  pthread_t id_{};
  bool runs_ = false;
};

/// Number of cores available to this process (its affinity mask), at least 1.
inline unsigned allowed_cores() {
#if defined(__linux__)
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return unsigned(CPU_COUNT(&set));
#endif
  long const n = sysconf(_SC_NPROCESSORS_ONLN);
  return n > 0 ? unsigned(n) : 1;
}

/// The calling thread sleeps. Signals that wake it meanwhile do not end the sleep.
inline void sleep_for(long nanoseconds) {
  constexpr long second = 1'000'000'000;
  timespec left{nanoseconds / second, nanoseconds % second};
  uninterrupted([&] { return nanosleep(&left, &left); });
}

}  // namespace pp::detail
