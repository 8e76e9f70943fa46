// SPDX-License-Identifier: BSL-1.0
//
// A thread for work that nothing waits for: reports for people. It yields to the threads that
// train, and takes none of the program's signals: Ctrl-C interrupts the thread that waits for it.
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

/// Runs run(self) at the lowest priority, and is joined at its end: the owner lets run() return
/// before.
///
/// law: signals that the program handles interrupt none of its calls
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
