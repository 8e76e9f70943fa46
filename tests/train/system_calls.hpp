// SPDX-License-Identifier: BSL-1.0
//
// Calls of the operating system that go wrong when a test wants it: in this program write, pread,
// fsync and rename are the test's own (system_calls.cpp), and so is operator new; they do what the
// system does unless a plan says otherwise.
#pragma once

#include <csignal>
#include <new>
#include <stdexcept>

#include <sys/resource.h>

#include <pipe/base/error.hpp>

#include "sanitized.hpp"

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

/// Lets the call number `at` (from 0) of operator new fail while work() runs on this thread, which
/// must then throw. False if there were fewer calls.
class failing_allocation {
 public:
  template <class Work>
  static bool happened(int at, Work work) {
    arm(at);
    bool thrown = false;
    try {
      work();
    } catch (std::bad_alloc const&) {
      thrown = true;
    } catch (pp::file_error const&) {  // which names the file
      thrown = true;
    }
    bool const failed = disarm();
    if (failed != thrown)
      throw std::logic_error("an allocation that failed was not told, or another was");
    return failed;
  }

 private:
  static void arm(int at);
  static bool disarm();
};

/// While it lives, a resource of this program has another limit.
class resource_limit {
 public:
  resource_limit(__rlimit_resource resource, rlim_t most) : resource_(resource) {
    getrlimit(resource_, &before_);
    rlimit const small{most, before_.rlim_max};
    setrlimit(resource_, &small);
  }
  resource_limit(resource_limit const&) = delete;
  resource_limit& operator=(resource_limit const&) = delete;
  ~resource_limit() { setrlimit(resource_, &before_); }

 private:
  __rlimit_resource resource_;
  rlimit before_{};
};

/// While it lives, no file of this program grows beyond so many bytes: a disk that is full in the
/// middle of a write.
class file_size_limit {
 public:
  explicit file_size_limit(rlim_t bytes)
      : handler_(std::signal(SIGXFSZ, SIG_IGN)), limit_(RLIMIT_FSIZE, bytes) {}
  file_size_limit(file_size_limit const&) = delete;
  file_size_limit& operator=(file_size_limit const&) = delete;
  ~file_size_limit() { std::signal(SIGXFSZ, handler_); }

 private:
  void (*handler_)(int);
  resource_limit limit_;
};
