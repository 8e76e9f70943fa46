// SPDX-License-Identifier: BSL-1.0
//
// Thread affinity: binding of a thread to one of the cores available to this process. Without
// effect on systems other than Linux.
#pragma once

#if defined(__linux__)
#include <pthread.h>
#include <sched.h>
#endif

#include <pipe/base/thread.hpp>
#include <pipe/runtime/job.hpp>

namespace pp::detail {

/// Binds the calling thread to the n-th allowed core, from 0, in the order of the cores' numbers. A
/// refusal by the system is ignored: the binding only affects speed.
inline void pin_this_thread(int n) {
#if defined(__linux__)
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return;
  for (int core = 0, seen = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &allowed) && seen++ == n) {
      cpu_set_t one;
      CPU_ZERO(&one);
      CPU_SET(core, &one);
      pthread_setaffinity_np(pthread_self(), sizeof(one), &one);
      return;
    }
#else
  (void)n;
#endif
}

/// Settings adapted to the cores, which `processes` processes with `threads` threads each share.
/// With more threads than cores, spinning would keep the awaited thread from running, and pinning
/// would bind two threads to one core: both are switched off.
[[gnu::cold]] inline executor_settings fit_to_cores(executor_settings s, int threads,
                                                    int processes = 1) {
  if (threads * processes > int(allowed_cores())) {
    s.waiting.spin = std::chrono::nanoseconds(0);
    s.pin = false;
  }
  return s;
}

}  // namespace pp::detail
