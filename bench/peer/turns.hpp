// SPDX-License-Identifier: BSL-1.0
//
// Timing on a shared machine: functions that are compared take turns, so that what disturbs one
// disturbs all of them, and each is judged by its median.
#pragma once

#include <time.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

namespace bench {

/// Seconds of the shortest turn: below it a clock and its call would be a part of what is measured.
inline constexpr double shortest_turn = 2e-3;

/// Time that passed.
inline double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
/// Time that this thread had a core, for functions of one thread: the turns of other programs on
/// the core do not count.
inline double thread_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}
using clock = double (*)();

inline double seconds_of(std::function<void()> const& f, int calls, clock now) {
  double const start = now();
  for (int i = 0; i < calls; ++i) f();
  return (now() - start) / calls;
}

inline double median(std::vector<double> all) {
  auto const middle = all.begin() + std::ptrdiff_t(all.size() / 2);
  std::nth_element(all.begin(), middle, all.end());
  return *middle;
}

/// Seconds of one call of each function, round by round. A turn is as many calls as fill
/// `shortest_turn`.
class turns {
 public:
  turns(std::vector<std::function<void()>> const& functions, int rounds, clock now = wall_seconds)
      : seconds_(functions.size()) {
    std::vector<int> calls;
    for (auto const& f : functions) {
      f();  // warms up
      calls.push_back(1 + int(shortest_turn / seconds_of(f, 1, now)));
    }
    for (int round = 0; round < rounds; ++round)
      for (std::size_t i = 0; i < functions.size(); ++i)
        seconds_[i].push_back(seconds_of(functions[i], calls[i], now));
  }

  double median(std::size_t i) const { return bench::median(seconds_[i]); }
  double best(std::size_t i) const {
    return *std::min_element(seconds_[i].begin(), seconds_[i].end());
  }

  /// Seconds of function `i` over those of `j`: the median of the rounds' ratios, since what lasts
  /// for a while, such as a busy neighbour, slows a whole round.
  double ratio(std::size_t i, std::size_t j) const { return bench::median(ratios(i, j)); }
  /// The quartiles of those ratios: how far they vary.
  std::array<double, 3> quartiles(std::size_t i, std::size_t j) const {
    std::vector<double> all = ratios(i, j);
    std::sort(all.begin(), all.end());
    auto const at = [&](std::size_t quarter) { return all[(all.size() - 1) * quarter / 4]; };
    return {at(1), bench::median(all), at(3)};
  }

 private:
  std::vector<double> ratios(std::size_t i, std::size_t j) const {
    std::vector<double> all;
    for (std::size_t round = 0; round < seconds_[i].size(); ++round)
      all.push_back(seconds_[i][round] / seconds_[j][round]);
    return all;
  }

  std::vector<std::vector<double>> seconds_;
};

inline double geometric_mean(std::vector<double> const& all) {
  double sum = 0;
  for (double x : all) sum += std::log(x);
  return std::exp(sum / double(all.size()));
}

}  // namespace bench
