// SPDX-License-Identifier: BSL-1.0
//
// Timing on a shared machine: functions that are compared take turns, so that what disturbs one
// disturbs all of them, and each is judged by its median.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

namespace bench {

/// Seconds of the shortest turn: below it a clock and its call would be a part of what is measured.
inline constexpr double shortest_turn = 2e-3;

inline double seconds_of(std::function<void()> const& f, int calls) {
  auto const start = std::chrono::steady_clock::now();
  for (int i = 0; i < calls; ++i) f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / calls;
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
  turns(std::vector<std::function<void()>> const& functions, int rounds)
      : seconds_(functions.size()) {
    std::vector<int> calls;
    for (auto const& f : functions) {
      f();  // warms up
      calls.push_back(1 + int(shortest_turn / seconds_of(f, 1)));
    }
    for (int round = 0; round < rounds; ++round)
      for (std::size_t i = 0; i < functions.size(); ++i)
        seconds_[i].push_back(seconds_of(functions[i], calls[i]));
  }

  double median(std::size_t i) const { return bench::median(seconds_[i]); }
  double best(std::size_t i) const {
    return *std::min_element(seconds_[i].begin(), seconds_[i].end());
  }

  /// Seconds of function `i` over those of `j`: the median of the rounds' ratios, since what lasts
  /// for a while, such as a busy neighbour, slows a whole round.
  double ratio(std::size_t i, std::size_t j) const {
    std::vector<double> ratios;
    for (std::size_t round = 0; round < seconds_[i].size(); ++round)
      ratios.push_back(seconds_[i][round] / seconds_[j][round]);
    return bench::median(std::move(ratios));
  }

 private:
  std::vector<std::vector<double>> seconds_;
};

inline double geometric_mean(std::vector<double> const& all) {
  double sum = 0;
  for (double x : all) sum += std::log(x);
  return std::exp(sum / double(all.size()));
}

}  // namespace bench
