// SPDX-License-Identifier: BSL-1.0
//
// The streams and events of a device that is a CPU. What is put on a stream is done when it is
// waited for, in an order that events allow and a program must not rely on: a wait that is missing
// shows as wrong numbers.
#pragma once

#include <cstdlib>
#include <deque>
#include <functional>
#include <vector>

namespace fake_gpu {

struct event {
  bool is_timed = false;
  long promised = 0, reached = 0;
};
struct task {
  std::function<void()> work;
  event* awaited = nullptr;
  long until = 0;
  bool is_ready() const { return awaited == nullptr || awaited->reached >= until; }
};
struct stream {
  std::deque<task> tasks;
};

/// Which stream goes on when several can: the one that is waited for, and others only if they must;
/// or the last created, or the first.
enum class preference { awaited, last, first };

struct machine {
  std::vector<stream*> streams;
  preference prefers = preference::awaited;

  static bool can_go_on(stream const* s) {
    return !s->tasks.empty() && s->tasks.front().is_ready();
  }
  stream* next(stream* awaited) const {
    if (prefers == preference::awaited && can_go_on(awaited)) return awaited;
    stream* found = nullptr;
    for (stream* s : streams)
      if (can_go_on(s) && (found == nullptr || prefers == preference::last)) found = s;
    return found;
  }
  void reach(event const* awaited) {
    while (awaited->reached < awaited->promised) {
      stream* const s = next(streams.front());
      if (s == nullptr) std::abort();
      run_first(s);
    }
  }
  static void run_first(stream* s) {
    task const t = std::move(s->tasks.front());
    s->tasks.pop_front();
    if (t.work) t.work();
  }
  void finish(stream* awaited) {
    while (!awaited->tasks.empty()) {
      stream* const s = next(awaited);
      if (s == nullptr) std::abort();  // each waits for another
      run_first(s);
    }
  }
};

}  // namespace fake_gpu
