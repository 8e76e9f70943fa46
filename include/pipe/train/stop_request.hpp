// SPDX-License-Identifier: BSL-1.0
//
// Signals of a training program: a request to stop is noted, so that the program ends its step,
// saves and exits; a signal that only concerns the program's output does not end the program.
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <array>
#include <cstddef>

#include <signal.h>

#include <pipe/train/parts/trainer_processes.hpp>

namespace pp {

/// While a stop_request lives, the first SIGINT or SIGTERM is noted and has no other effect; the
/// second has its default effect, which ends the program at once. SIGHUP (a lost terminal), SIGPIPE
/// (a lost reader) and SIGXFSZ (a file at its limit) do not end the program: a write fails with an
/// error instead. Signals that were ignored before, as SIGHUP under nohup, stay ignored, and
/// signals with a handler keep it, except SIGINT and SIGTERM. The destructor restores everything.
/// At most one object at a time.
///
///     stop_request stop;
///     while (trainer.steps() < n && !stop.is_requested(trainer)) trainer.step(...);
///     trainer.save(path);
///     return stop.exit_code();
class stop_request {
 public:
  stop_request() {
    received = 0;
    hangups = 0;
    for (std::size_t i = 0; i < signals.size(); ++i) {
      bool const stops = i < stopping;
      struct sigaction action{};
      action.sa_handler = stops ? note : signals[i] == SIGHUP ? note_hangup : pass;
      action.sa_flags = SA_RESTART;  // no write to a file is cut short
      sigaction(signals[i], nullptr, &before_[i]);
      bool const is_default =
          (before_[i].sa_flags & SA_SIGINFO) == 0 && before_[i].sa_handler == SIG_DFL;
      bool const is_ignored =
          (before_[i].sa_flags & SA_SIGINFO) == 0 && before_[i].sa_handler == SIG_IGN;
      if (is_default || (stops && !is_ignored)) sigaction(signals[i], &action, nullptr);
    }
  }
  ~stop_request() {
    for (std::size_t i = 0; i < signals.size(); ++i) sigaction(signals[i], &before_[i], nullptr);
  }
  stop_request(stop_request const&) = delete;
  stop_request& operator=(stop_request const&) = delete;

  /// Whether a signal has asked this process to stop.
  explicit operator bool() const { return signal() != 0; }
  /// Whether a signal has asked any process of the trainer to stop. If the trainer's ranks are in
  /// several processes, all processes call is_requested() at the same step, exchange a number, and
  /// then stop at the same step.
  template <class Trainer>
  bool is_requested(Trainer const& trainer) {
    // The largest number of a signal, so that every process exits with the same code.
    agreed_ = int(-trainer.processes().least(-long(signal())));
    return agreed_ != 0;
  }

  /// The name of the signal; "" if there was none.
  char const* name() const {
    return signal() == SIGINT ? "SIGINT" : signal() == SIGTERM ? "SIGTERM" : "";
  }
  /// The exit code for the program: 128 + the signal's number, as a shell reports it (130 for
  /// SIGINT, 143 for SIGTERM); 0 if there was none.
  int exit_code() const { return signal() == 0 ? 0 : 128 + signal(); }
  /// Whether the terminal was lost (SIGHUP).
  bool has_lost_terminal() const { return hangups != 0; }

 private:
  /// The first `stopping` signals ask the program to stop.
  static constexpr std::array<int, 5> signals = {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGXFSZ};
  static constexpr std::size_t stopping = 2;

  static void note(int number) {
    received = number;
    for (std::size_t i = 0; i < stopping; ++i) {
      struct sigaction now{};
      if (sigaction(signals[i], nullptr, &now) != 0 || now.sa_handler != note) continue;
      now.sa_handler = SIG_DFL;
      sigaction(signals[i], &now, nullptr);
    }
  }
  static void note_hangup(int) { hangups = 1; }
  static void pass(int) {}

  /// The signal that this process has received, or of which is_requested() has learnt; 0 for none.
  int signal() const { return agreed_ != 0 ? agreed_ : int(received); }

  static inline sig_atomic_t volatile received = 0, hangups = 0;
  int agreed_ = 0;
  std::array<struct sigaction, signals.size()> before_{};
};

}  // namespace pp
