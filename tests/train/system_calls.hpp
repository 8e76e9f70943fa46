// SPDX-License-Identifier: BSL-1.0
//
// Calls of the operating system that go wrong when a test wants it: in this program write, pread, fsync and rename are the
// test's own (system_calls.cpp), and do what the system does unless a plan says otherwise.
#pragma once

#include <csignal>

#include <sys/resource.h>

enum class mishap { fails, dies, interrupted, short_count };

/// While it lives, the call number `at` (from 0, of those named above) goes wrong. One at a time.
class planned_mishap {
 public:
  planned_mishap(mishap what, int at, int error = 0);
  planned_mishap(planned_mishap const&) = delete;
  planned_mishap& operator=(planned_mishap const&) = delete;
  ~planned_mishap();

  /// Whether there were that many calls.
  bool happened() const;
};

/// What the program exits with when it dies by plan.
inline constexpr int dead_by_plan = 86;

/// While it lives, no file of this program grows beyond so many bytes: a disk that is full in the middle of a write.
class file_size_limit {
 public:
  explicit file_size_limit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    rlimit const small{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &small);
  }
  file_size_limit(file_size_limit const&) = delete;
  file_size_limit& operator=(file_size_limit const&) = delete;
  ~file_size_limit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  void (*handler_)(int);
};
