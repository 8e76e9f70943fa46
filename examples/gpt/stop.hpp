// SPDX-License-Identifier: BSL-1.0
//
// Ctrl-C during a training of hours must not cost the weights: the first signal only asks for an
// end.
#pragma once

#include <signal.h>

#include <array>
#include <cstddef>

/// While one lives, the first SIGINT, SIGTERM or SIGHUP is noted and has no other effect; the
/// second has its default effect. What the program was started to ignore (nohup) stays ignored. At
/// most one at a time.
class stop_request {
 public:
  stop_request() {
    received = 0;
    struct sigaction action{};
    action.sa_handler = note;
    action.sa_flags = SA_RESTART;  // no write to a file is cut short
    for (std::size_t i = 0; i < signals.size(); ++i) {
      sigaction(signals[i], nullptr, &before_[i]);
      if (before_[i].sa_handler != SIG_IGN) sigaction(signals[i], &action, nullptr);
    }
  }
  ~stop_request() {
    for (std::size_t i = 0; i < signals.size(); ++i) sigaction(signals[i], &before_[i], nullptr);
  }
  stop_request(stop_request const&) = delete;
  stop_request& operator=(stop_request const&) = delete;

  explicit operator bool() const { return received != 0; }

  /// The signal's name, if there was one.
  char const* name() const {
    return received == SIGINT ? "SIGINT" : received == SIGTERM ? "SIGTERM" : "SIGHUP";
  }

 private:
  static constexpr std::array<int, 3> signals = {SIGINT, SIGTERM, SIGHUP};

  static void note(int number) {
    received = number;
    for (int const s : signals) {
      struct sigaction now{};
      if (sigaction(s, nullptr, &now) == 0 && now.sa_handler == note) signal(s, SIG_DFL);
    }
  }

  static inline sig_atomic_t volatile received = 0;
  std::array<struct sigaction, signals.size()> before_{};
};
