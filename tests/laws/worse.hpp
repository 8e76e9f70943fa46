// SPDX-License-Identifier: BSL-1.0
//
// The larger of two errors. NaN is infinitely large: std::max and std::fmax would pass over it, and
// a test with it.
#pragma once

#include <limits>

namespace laws {

inline double worse(double error, double other) {
  if (error != error || other != other) return std::numeric_limits<double>::infinity();
  return error < other ? other : error;
}

}  // namespace laws
