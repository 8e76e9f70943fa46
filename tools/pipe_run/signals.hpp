// SPDX-License-Identifier: BSL-1.0
//
// Signals of the launcher, as things that it reads when it is ready for them.
#pragma once

#include <csignal>
#include <cstdint>
#include <initializer_list>

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "descriptor.hpp"

namespace launcher {

/// While one lives, the signals below are not delivered but read. Those that the launcher was
/// started to ignore (nohup) stay ignored.
class signals {
 public:
  /// Signals that ask for the end, and those that a program may understand otherwise.
  static constexpr std::initializer_list<int> ends{SIGINT, SIGTERM, SIGHUP, SIGQUIT};
  static constexpr std::initializer_list<int> others{SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT};

  signals() {
    sigset_t all;
    sigemptyset(&all);
    sigaddset(&all, SIGCHLD);
    for (auto const& list : {ends, others})
      for (int const s : list) {
        struct sigaction now{};
        sigaction(s, nullptr, &now);
        if (now.sa_handler != SIG_IGN) sigaddset(&all, s);
      }
    signal(SIGPIPE, SIG_IGN);
    sigprocmask(SIG_BLOCK, &all, &before_);
    from_ = descriptor(signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!from_.is_open()) throw_fault("read signals");
  }

  /// The mask from before, for a program that is started.
  sigset_t const& before() const { return before_; }
  /// Readable when a signal has come.
  int number() const { return from_.number(); }
  /// The next signal that has come; 0: none.
  int take() {
    signalfd_siginfo one{};
    return read(from_.number(), &one, sizeof(one)) == sizeof(one) ? int(one.ssi_signo) : 0;
  }
  static bool is_end(int signal) {
    for (int const s : ends)
      if (s == signal) return true;
    return false;
  }

 private:
  sigset_t before_{};
  descriptor from_;
};

}  // namespace launcher
