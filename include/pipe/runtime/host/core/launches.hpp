// SPDX-License-Identifier: BSL-1.0
//
// Launches of kernels by a rank's threads, and their operands as a watcher sees them.
#pragma once

#include <pipe/base/config.hpp>
#include <pipe/base/libm.hpp>
#include <pipe/runtime/actions.hpp>
#include <pipe/runtime/description.hpp>
#include <pipe/runtime/host/core/backend_calls.hpp>
#include <pipe/runtime/host/core/team.hpp>
#include <pipe/runtime/job.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp::host {

/// The arguments of a program's launches on a micro-batch, except for operands and losses.
template <class T>
arguments<T> arguments_of(detail::pipeline_description const& d, detail::job const& j,
                          int micro_batch, void* workspace) {
  arguments<T> a;
  detail::set_context(a, d, j, micro_batch);
  a.seed = j.seed;
  a.step = j.step;
  a.first_sample = j.part.first_sample + long(micro_batch) * d.samples;
  a.workspace = workspace;
  a.loss_scale = T(1 / j.loss.gradient_terms);
  a.further = j.loss.further.count > 0 ? &j.loss.further : nullptr;
  return a;
}

/// Runs a launch whose operands are in a.operand: on the calling thread if the kernel is not
/// divided (d.parts is 1), else one part on each thread of the team, each with its own workspace.
template <class T>
void run_launch(detail::pipeline_description const& d, detail::backend_calls<T> const& calls,
                detail::launch const& l, arguments<T> const& a, detail::team& threads) {
  kernel<T> const kernel = calls.groups[l.group];
  if (d.parts[l.group] == 1) return kernel(a);
  threads.run([&](int part) {
    // A copy for each thread: parts differ in their number and workspace only.
    arguments<T> mine = a;
    mine.part = part;
    mine.parts = threads.size();
    mine.workspace = static_cast<char*>(a.workspace) + part * d.workspace_bytes;
    kernel(mine);
  });
}

/// Passes a launch that has just run to the job's watcher. Operands are read in place.
template <class T>
[[gnu::cold]] void show(arguments<T> const& a, launch_seen seen, detail::job const& run) {
  // Lives on this stack, which is why values are valid during the call only.
  struct written {
    void* const* operands;
    launch_seen const& by;
  } w{a.operand, seen};
  seen.reader = {
      &w, [](void* of, int k) -> void const* { return static_cast<written*>(of)->operands[k]; },
      [](void* of) {
        written const& all = *static_cast<written*>(of);
        // Operands that the launch only reads have 0 elements.
        for (int k = 0; k < all.by.what->count; ++k)
          for (T const *x = static_cast<T const*>(all.operands[k]),
                       *end = x + all.by.operands[k].elements;
               x != end; ++x)
            if (!libm::isfinite(*x)) return k;
        return -1;
      }};
  run.watch.see(run.watch.of, seen);
}

/// Runs a launch and passes it to the job's watcher.
template <class T>
[[gnu::cold]] void run_watched(detail::pipeline_description const& d,
                               detail::backend_calls<T> const& calls, detail::job const& run,
                               arguments<T> const& a, detail::team& threads, launch_seen seen) {
  using clock = std::chrono::steady_clock;
  clock::time_point const start = clock::now();
  run_launch(d, calls, *seen.what, a, threads);
  seen.nanoseconds =
      std::chrono::duration_cast<std::chrono::nanoseconds>(clock::now() - start).count();
  show(a, seen, run);
}

}  // namespace pp::host
PIPE_OPTIMIZED_END
