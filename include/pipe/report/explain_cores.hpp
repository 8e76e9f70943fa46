// SPDX-License-Identifier: BSL-1.0
//
// Stages or threads, as text: which of the two is expected to be faster on the cores of one
// machine, and by what the other loses.
#pragma once

#include <string>
#include <type_traits>

#include <pipe/backend/host/backend.hpp>
#include <pipe/backend/host/threads.hpp>
#include <pipe/plan/compiled/step_on_cores.hpp>
#include <pipe/report/amounts.hpp>
#include <pipe/report/text_table.hpp>
#include <pipe/transport/in_process/in_process.hpp>

namespace pp::detail {

/// Whether a pipeline trains on several cores of one machine: threads of one process, on the host,
/// of which HostThreads may have as many.
template <class P>
constexpr bool trains_on_cores() {
  constexpr int cores = P::ranks * P::threads;
  constexpr bool on_host = std::is_base_of_v<host_backend, typename P::backend>,
                 in_one_process = std::is_same_v<typename P::chosen::transport, in_process>;
  return cores > 1 && cores <= most_threads && P::schedule::trains && on_host && in_one_process;
}

/// Three digits of a time in nanoseconds: "28.8 ms", "5.61 ms", "0.056 ms"
template <class = void>
std::string readable_milliseconds(double ns) {
  return readable_real(ns * 1e-6, ns < 1e6 ? 3 : ns < 1e7 ? 2 : 1) + " ms";
}

/// The largest loss of a step.
template <class = void>
std::string explain_loss(expected_step const& step) {
  core_loss const most = step.largest();
  auto const why = [most] {
    switch (most) {
      case core_loss::bubble: return "while they fill and drain";
      case core_loss::cut: return "as they are unequal";
      case core_loss::hand_offs: return "to hand values on";
      case core_loss::undivided: return "in kernels that do not divide evenly";
      case core_loss::waking: return "to begin and end kernels together";
      case core_loss::weights: return "to read weights again";
      case core_loss::values: return "as values leave the cache";
      case core_loss::exchange: return "to read what the others write";
    }
    return "";
  };
  return readable_milliseconds(step[most]) + " " + why();
}

/// Which of the ways to use several cores is the fastest, and what the other loses most by.
///
/// stages: the plan's, or null for a plan of one rank; of_rank: the threads of a rank
template <class = void>
std::string explain_fastest(expected_step const& one, expected_step const& threads,
                            expected_step const* stages, int cores, int of_rank) {
  constexpr double alike = 1.1;  // two times within 10 %
  std::string const option = "HostThreads<" + std::to_string(cores) + ">",
                    of_threads = "threads lose " + explain_loss(threads);
  double best = threads.time;
  if (stages != nullptr && stages->time < best) best = stages->time;
  if (one.time < alike * best)
    return "one thread is about as fast: leave out " + (stages == nullptr ? option
                                                        : of_rank > 1     ? "Stages and HostThreads"
                                                                          : "Stages");
  if (stages == nullptr) return of_threads;
  std::string const of_stages = "stages lose " + explain_loss(*stages);
  if (stages->time > alike * threads.time)
    return counted(cores, "thread") + " are faster (" + option +
           " without Stages and MicroBatches), since " + of_stages;
  if (threads.time > alike * stages->time) return "stages are faster, since " + of_threads;
  return "alike, within 10 %: " + of_stages + ", " + of_threads;
}

/// Expected times of a step on the cores of one machine, in two or three lines; nothing for one
/// core, several processes or another device.
template <class Trainer>
std::string explain_cores() {
  using compiled = typename Trainer::compiled;
  if constexpr (trains_on_cores<compiled>()) {
    constexpr bool is_cut = compiled::ranks > 1;
    step_on_cores<compiled> const expected;
    auto const one = expected.one_thread(), threads = expected.threads();
    auto stages = threads;
    if constexpr (is_cut) stages = expected.of_plan();
    std::string times = "expected on " + counted(expected.cores, "core") + " of one machine: ";
    if (is_cut)
      times += counted(compiled::stages, "stage") + " take " + readable_milliseconds(stages.time) +
               " a step, ";
    times += counted(expected.cores, "thread") + " of one stage " +
             readable_milliseconds(threads.time) + ", one thread " +
             readable_milliseconds(one.time);
    return wrapped(times, 100, 2) + "\n" +
           wrapped(explain_fastest(one, threads, is_cut ? &stages : nullptr, expected.cores,
                                   compiled::threads),
                   100, 2) +
           "\n";
  } else {
    return {};
  }
}

}  // namespace pp::detail
