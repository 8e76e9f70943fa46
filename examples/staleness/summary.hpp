// SPDX-License-Identifier: BSL-1.0
//
// Statistics of many runs: mean and spread over seeds for every rate of every trainer, the best
// rate of each, and its difference to the schedule with a flush at the best rate of that.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "staleness.hpp"

/// A run that has ended.
struct ended_run {
  std::size_t arm;  ///< of arms()
  double factor;    ///< of the learning rate
  std::uint64_t seed;
  outcome result;
};

/// Mean and spread (the sample standard deviation) of a number over seeds; the spread of less than
/// two is NaN.
struct statistics {
  std::size_t count = 0;
  double mean = 0, spread = std::numeric_limits<double>::quiet_NaN();

  statistics() = default;
  explicit statistics(std::vector<double> const& x) : count(x.size()) {
    for (double v : x) mean += v / double(count);
    double squares = 0;
    for (double v : x) squares += (v - mean) * (v - mean);
    if (count > 1) spread = std::sqrt(squares / double(count - 1));
  }
};

/// A trainer at one rate.
struct cell {
  double factor = 0;
  std::vector<ended_run const*> runs;  ///< in the order of their seeds
  statistics loss;                     ///< on held-out text, of the runs that did not diverge
  std::size_t diverged = 0;

  bool is_comparable() const { return loss.count > 0 && diverged == 0; }
};

/// A trainer at all rates.
struct summary {
  arm const* of = nullptr;
  std::vector<cell> cells;       ///< in the order of the rates
  int best = -1;                 ///< the cell of the least mean; -1: there is none
  bool best_is_at_edge = false;  ///< no lower, or no higher rate was tried
  statistics difference;         ///< to the baseline, of the same seeds, both at their best rates
  std::string verdict;           ///< what may be claimed of it
};

/// The schedule that others are compared with.
inline constexpr char const* baseline = "1f1b";

/// A summary for each of the trainers, in their order.
///
/// factors: of the learning rate, ascending
std::vector<summary> summaries_of(std::vector<std::size_t> const& which,
                                  std::vector<double> const& factors,
                                  std::vector<ended_run> const& runs);

/// "2.1034 ± 0.0021"; without a spread where there is none; "diverged", or "-" without a run.
std::string words_of(cell const&);
/// "+0.0134 ± 0.0021", or "-".
std::string words_of_difference(summary const&);
/// A number with `digits` significant digits, as short as they allow.
std::string short_number(double x, int digits = 3);

/// A row for each run.
std::string csv_of(std::vector<ended_run> const& runs);
