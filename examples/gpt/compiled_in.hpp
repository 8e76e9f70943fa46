// SPDX-License-Identifier: BSL-1.0
//
// The schedules by their names, with the program of those that are compiled.
#pragma once

#include <string_view>
#include <type_traits>

#include "gpt.hpp"

/// The program under one schedule: see run.hpp.
template <class Trainer>
void run(options const&);

#ifndef EXAMPLE_SCHEDULES
#define EXAMPLE_SCHEDULES ""
#endif
/// Whether a schedule is compiled: all are, unless EXAMPLE_SCHEDULES has names, a comma after each.
constexpr bool is_compiled(std::string_view name) {
  std::string_view names = EXAMPLE_SCHEDULES;
  if (names.empty()) return true;
  for (std::size_t end = 0; (end = names.find(',')) != names.npos; names.remove_prefix(end + 1))
    if (names.substr(0, end) == name) return true;
  return false;
}

/// Compiles schedules in, for --schedule of a program on a backend.
template <class Backend, class... Schedule>
struct compiled_in {
  template <class S>
  static constexpr program program_of() {
    if constexpr (is_compiled(S::name))
      return run<Trainer<S, Backend>>;
    else
      return nullptr;
  }
  compiled_in() {
    auto& known = programs(std::is_same_v<Backend, pp::Cuda> ? "cuda" : "cpu");
    ((known[Schedule::name] = program_of<Schedule>()), ...);
  }
};
template <class Backend>
using all_schedules =
    compiled_in<Backend, pp::OneFOneB, pp::EagerOneFOneB, pp::GPipe, pp::Interleaved<2>,
                pp::GroupedInterleaved<2>, pp::LoopedBFS<2>, pp::Hanayo<>, pp::ZeroBubbleH1,
                pp::ZeroBubbleH2, pp::ZeroBubbleV, pp::VHalf, pp::VMin>;
