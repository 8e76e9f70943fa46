// SPDX-License-Identifier: BSL-1.0
//
// Launches of kernels by a rank's threads, and their operands as a watcher sees them.
#pragma once

#include <vector>

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
  a.first_sample = first_sample_in(d, j, micro_batch);
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

/// The operands of a launch that has just run, as a watcher reads them: numbers in place, values of
/// 16 bits as converted copies. It lives on the stack of a call of the watcher, which is why what
/// it gives is valid during the call only.
template <class T>
struct seen_operands {
  detail::backend_calls<T> const& calls;
  arguments<T> const& with;
  launch_seen const& by;
  std::vector<std::vector<T>> copies{};

  [[gnu::cold]] T const* values(int k) {
    detail::placed_operand const& o = by.operands[k];
    if (calls.widen == nullptr || o.is_wide) return with.at(k);
    copies.resize(std::size_t(by.what->count));
    std::vector<T>& copy = copies[std::size_t(k)];
    copy.resize(std::size_t(o.elements));
    calls.widen(with.operand[k], o.elements, copy.data());
    return copy.data();
  }
  /// The elements of an operand that the launch has written: with Lengths, of rows that are there.
  long written(detail::placed_operand const& o) const {
    detail::segment_list const* const s = o.axis == 0                   ? nullptr
                                          : o.axis == by.what->key_axis ? with.key_segments
                                                                        : with.segments;
    return s == nullptr ? o.elements : o.elements / s->planned_rows * s->rows;
  }
  [[gnu::cold]] int first_not_finite() {
    // Operands that the launch only reads have 0 elements.
    for (int k = 0; k < by.what->count; ++k)
      for (T const *x = values(k), *end = x + written(by.operands[k]); x != end; ++x)
        if (!libm::isfinite(*x)) return k;
    return -1;
  }
};

/// Passes a launch that has just run to the job's watcher.
template <class T>
[[gnu::cold]] void show(detail::backend_calls<T> const& calls, arguments<T> const& a,
                        launch_seen seen, detail::job const& run) {
  seen_operands<T> w{calls, a, seen};
  seen.reader = {
      &w,
      [](void* of, int k) -> void const* { return static_cast<seen_operands<T>*>(of)->values(k); },
      [](void* of) { return static_cast<seen_operands<T>*>(of)->first_not_finite(); },
      [](void* of, int k) {
        seen_operands<T> const& all = *static_cast<seen_operands<T>*>(of);
        return all.written(all.by.operands[k]);
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
  show(calls, a, seen, run);
}

}  // namespace pp::host
PIPE_OPTIMIZED_END
