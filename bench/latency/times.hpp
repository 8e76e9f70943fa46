// SPDX-License-Identifier: BSL-1.0
//
// The times of single calls, which the programs of bench/latency.py print.
#pragma once

#include <chrono>
#include <cmath>
#include <cstdio>
#include <vector>

namespace latency {

inline constexpr int inputs = 32, outputs = 4;
/// Different samples, so that no gradient becomes too small to be a normal number.
inline constexpr int samples = 64;
/// Input or target k of a sample.
inline float number(int sample, int k) { return std::sin(float(sample * 7 + k * 13)); }

/// Calls call(sample) so often unmeasured and then measured, and prints the nanoseconds of each.
template <class Call>
void print(char const* name, int count, Call const& call) {
  for (int i = 0; i < 1 + count / 4; ++i) call(i % samples);
  std::vector<long> times;
  times.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    auto const begin = std::chrono::steady_clock::now();
    call(i % samples);
    auto const end = std::chrono::steady_clock::now();
    times.push_back(std::chrono::duration_cast<std::chrono::nanoseconds>(end - begin).count());
  }
  std::printf("%s", name);
  for (long const t : times) std::printf(" %ld", t);
  std::printf("\n");
}

}  // namespace latency
