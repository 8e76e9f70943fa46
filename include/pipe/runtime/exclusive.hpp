// SPDX-License-Identifier: BSL-1.0
//
// Mutual exclusion of calls: one at a time. An engine has threads that know its address, so it
// lives on the heap behind a handle that can move, and a call at the wrong moment gets an error
// instead of a data race or a wait without end.
#pragma once

#include <atomic>
#include <thread>
#include <utility>

#if defined(__unix__) || defined(__APPLE__)
#include <unistd.h>
#endif

#include <pipe/base/config.hpp>
#include <pipe/base/error.hpp>
#include <pipe/base/sentence.hpp>

namespace pp::detail {

/// Whether an object is in use, and by which thread.
class occupancy {
 public:
  /// Begins a call; throws pp::error during another one, in another process, and after close().
  PIPE_ONE_COPY void enter() {
    if (process_ != this_process())
      complain<error>({"this trainer belongs to process ", process_,
                       ", and so do its threads: construct another one after fork()"});
    int found = idle;
    if (!state_.compare_exchange_strong(found, in_use)) refuse(found);
    user_.store(std::this_thread::get_id());
  }
  void leave() noexcept {
    int found = in_use;
    if (state_.compare_exchange_strong(found, idle)) return;
    state_.store(closed);
    state_.notify_all();
  }

  /// Refuses all further calls, after the one in progress has ended. Returns whether the object may
  /// be destroyed. It may not in a process that is not its own, whose memory has no threads to
  /// join; within one of its own calls, which goes on; nor after the call of another thread, which
  /// may come back.
  [[gnu::cold]] bool close(bool is_own_thread) noexcept {
    if (process_ != this_process()) return false;
    for (int found = idle; found != closed; found = state_.load()) {
      if (found == idle && state_.compare_exchange_strong(found, closed)) return true;
      if (is_own_thread || user_.load() == std::this_thread::get_id()) return false;
      if (found == in_use) state_.compare_exchange_strong(found, awaited);
      state_.wait(awaited);
    }
    return false;
  }

 private:
  enum state : int {
    idle,
    in_use,
    awaited,
    closed
  };  // awaited: in use, and close() waits for the end

  [[noreturn, gnu::cold]] static void refuse(int found) {
    if (found != closed)
      complain<error>(
          {"a run is in progress: a trainer takes one call at a time, from one thread, and none "
           "from its own "
           "callbacks"});
    // Most likely the program exits while this thread trains: give it the time to do so without an
    // exception.
    std::this_thread::sleep_for(std::chrono::seconds(5));
    complain<error>({"this trainer was destroyed"});
  }

  static long this_process() {
#if defined(__unix__) || defined(__APPLE__)
    return long(::getpid());
#else
    return 0;
#endif
  }

  std::atomic<int> state_{idle};
  std::atomic<std::thread::id> user_{};
  long const process_ = this_process();
};

/// A T on the heap that takes one call at a time. T says with check() (throws) whether it is whole,
/// and with is_own_thread() whether the calling thread is one of its own.
///
/// law: enter() throws pp::error and changes nothing, or keeps every other call out until its
///      result is destroyed
template <class T>
class exclusive {
  struct item {
    T value;
    occupancy use;
  };

 public:
  class [[nodiscard]] access {
   public:
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

  access enter() const { return access(checked()); }
  T* operator->() const { return &checked().value; }
  /// Throws pp::error after a move.
  void require() const { checked(); }

 private:
  item& checked() const {
    if (item_ == nullptr) complain<error>({"this trainer was moved from"});
    return *item_;
  }
  void dispose() noexcept {
    if (item_ != nullptr && item_->use.close(item_->value.is_own_thread())) delete item_;
  }

  item* item_;
};

}  // namespace pp::detail
