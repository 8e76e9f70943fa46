// SPDX-License-Identifier: BSL-1.0
//
// Threads of the library that take no signals: these are for the program's own threads.
#pragma once

#include <signal.h>

namespace pp::detail {

/// While one lives, the calling thread takes no signals. A thread that it starts meanwhile inherits
/// that, and never takes one.
class signals_blocked {
 public:
  signals_blocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  signals_blocked(signals_blocked const&) = delete;
  signals_blocked& operator=(signals_blocked const&) = delete;
  ~signals_blocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

}  // namespace pp::detail
