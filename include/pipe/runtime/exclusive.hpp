// SPDX-License-Identifier: BSL-1.0
//
// Mutual exclusion of calls to an engine. The engine's threads know its address, so the engine is
// allocated on the heap behind a movable handle. A call during another call throws, instead of
// racing or waiting forever.
#pragma once

#include <atomic>
#include <utility>

#include <pthread.h>
#include <unistd.h>

#include <pipe/base/config.hpp>
#include <pipe/base/error.hpp>
#include <pipe/base/heartbeat.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/base/thread.hpp>
#include <pipe/transport/waiting.hpp>

namespace pp::detail {

/// The forks between the first process of a program and this one, as fork() counts them: a read
/// costs nothing, whereas getpid() is a call of the system, a tenth of a microsecond.
class fork_count {
 public:
  /// Begins to count, once in a program. Forks before the first call are not counted, nor are those
  /// that run no handlers: _Fork() and clone().
  ///
  /// throws: std::bad_alloc
  static unsigned begin() {
    static int const failure = pthread_atfork(nullptr, nullptr, [] { ++count_; });
    if (failure != 0) throw std::bad_alloc();
    return now();
  }
  static unsigned now() { return count_.load(std::memory_order_relaxed); }

 private:
  static inline std::atomic<unsigned> count_{0};
};

/// State of an object that takes one call at a time: idle, in use, or closed.
class occupancy {
 public:
  /// Begins a call.
  ///
  /// throws: pp::error during another call, in a forked process, and after close()
  PIPE_ONE_COPY void enter() {
    if (forks_ != fork_count::now())
      throw_error<error>({"this trainer belongs to process ", process_,
                          ", and so do its threads: construct another one after fork()"});
    int found = idle;
    if (!state_.compare_exchange_strong(found, in_use)) refuse(found);
    user_.store(pthread_self());
  }
  /// Ends the call, and wakes a thread that waits in close() for it.
  void leave() noexcept {
    beat();
    user_.store({});  // before another thread's call begins, which close() could take for this one
    int found = in_use;
    if (state_.compare_exchange_strong(found, idle)) return;
    state_.store(closed);
    ended_.publish(1);
  }

  /// Waits for the call in progress and rejects all later calls. Returns whether the object may be
  /// destroyed. It may not be destroyed in three cases: in a forked process, which has no threads
  /// to join; inside of one of its own calls, which goes on afterwards; after another thread was
  /// found in a call, because that thread still accesses the object.
  [[gnu::cold]] bool close(bool is_own_thread) noexcept {
    if (forks_ != fork_count::now()) return false;
    for (int found = idle; found != closed; found = state_.load()) {
      // If a call begins or ends before an exchange, the exchange fails, and the loop looks again.
      if (found == idle) {
        if (state_.compare_exchange_strong(found, closed)) return true;
        continue;
      }
      if (is_own_thread || pthread_equal(user_.load(), pthread_self()) != 0) return false;
      if (found == in_use && !state_.compare_exchange_strong(found, awaited)) continue;
      ended_.wait(1, {{}, no_deadline});
    }
    return false;
  }

 private:
  /// awaited: in use, and close() waits for the end of the call.
  enum state : int { idle, in_use, awaited, closed };

  [[noreturn, gnu::cold]] static void refuse(int found) {
    if (found != closed)
      throw_error<error>(
          {"a run is in progress: a trainer takes one call at a time, and none from its own "
           "callbacks"});
    // Most likely the program is exiting while this thread trains: the pause lets the program exit
    // without an exception from here.
    sleep_for(5'000'000'000);
    throw_error<error>({"a call on a trainer that was destroyed: construct another one"});
  }

  std::atomic<int> state_{idle};
  progress ended_;  ///< 1 once the call for which close() waited has ended
  /// The thread of the last call to begin; close() reads it only during a call.
  std::atomic<pthread_t> user_{};
  /// fork() duplicates the object, but not the threads that work for it.
  long const process_ = long(::getpid());
  unsigned const forks_ = fork_count::begin();
};

/// Owner of a T on the heap that takes one call at a time. T::check() throws if the object is
/// broken; T::is_own_thread() identifies the object's threads.
///
/// law: enter() throws pp::error without effect, or excludes every other call until the returned
///      access is destroyed
template <class T>
class exclusive {
  /// The object and its state, at one address for as long as the object lives.
  struct item {
    T value;
    occupancy use;
  };

 public:
  /// Scope of one call.
  class [[nodiscard]] access {
   public:
    /// throws: as occupancy::enter(), and what T::check() throws, after the end of the call
    explicit access(item& i) : use_(i.use) {
      use_.enter();
      try {
        i.value.check();
      } catch (...) {
        use_.leave();
        throw;
      }
    }
    access(access const&) = delete;
    access& operator=(access const&) = delete;
    ~access() { use_.leave(); }

   private:
    occupancy& use_;
  };

  /// Constructs T(a...).
  template <class... A>
  explicit exclusive(A const&... a) : item_(new item{T(a...), {}}) {}
  exclusive(exclusive&& other) noexcept : item_(std::exchange(other.item_, nullptr)) {}
  exclusive& operator=(exclusive&& other) noexcept {
    if (this != &other) {
      dispose();
      item_ = std::exchange(other.item_, nullptr);
    }
    return *this;
  }
  ~exclusive() { dispose(); }

  /// throws: pp::error after a move, and as access
  access enter() const { return access(checked()); }
  /// Access without exclusion: within an `access`, or to members that need none.
  T* operator->() const { return &checked().value; }
  /// throws: pp::error after a move
  void require() const { checked(); }

 private:
  item& checked() const {
    if (item_ == nullptr)
      throw_error<error>({"this trainer was moved from: use the one that it was moved to"});
    return *item_;
  }
  /// Deletes the object, or leaks it if close() forbids its destruction: then another thread, or
  /// the process that forked, still uses it.
  void dispose() noexcept {
    if (item_ != nullptr && item_->use.close(item_->value.is_own_thread())) delete item_;
  }

  item* item_;
};

}  // namespace pp::detail
