// SPDX-License-Identifier: BSL-1.0
//
// A thread for work that no other thread waits for, such as reports. It yields to the threads that
// train, and blocks all signals, so that another thread of the program handles Ctrl-C.
#pragma once

#include <csignal>
#include <exception>
#include <string>

#include <pthread.h>
#include <sys/resource.h>

#include <pipe/base/error.hpp>
#include <pipe/base/signals_blocked.hpp>
#include <pipe/base/thread.hpp>

namespace pp::detail {

/// A thread that calls run(self) at the lowest priority. The destructor joins it: before, the owner
/// makes run() return.
///
/// law: signals that the program handles interrupt no call of this thread
class background_thread {
 public:
  using function = void (*)(void* self);

  /// throws: pp::error if the system has no thread to give
  background_thread(function run, void* self) : run_(run), self_(self) {
    signals_blocked const inherited;
    try {
      thread_ = thread(&begin, this, 0);
    } catch (std::exception const& e) {
      throw error(std::string("there is no thread for reports: ") + e.what());
    }
  }
  background_thread(background_thread const&) = delete;
  background_thread& operator=(background_thread const&) = delete;
  ~background_thread() { thread_.join(); }

 private:
  static void begin(void* self, int) {
    ::setpriority(PRIO_PROCESS, 0, 19);  // on Linux of the calling thread alone
    auto const& mine = *static_cast<background_thread const*>(self);
    mine.run_(mine.self_);
  }

  function run_;
  void* self_;
  thread thread_;
};

}  // namespace pp::detail
