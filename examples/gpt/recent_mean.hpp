// SPDX-License-Identifier: BSL-1.0
//
// The mean of the last of many numbers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

class recent_mean {
 public:
  void add(double x) { all_.push_back(x); }

  /// Of the last `count` numbers, or of all if there are fewer; not a number if there are none.
  double of_last(long count) const {
    long const n = std::min(count, long(all_.size()));
    double sum = 0;
    for (long i = 0; i < n; ++i) sum += all_[all_.size() - std::size_t(i) - 1];
    return sum / double(n);
  }

 private:
  std::vector<double> all_;
};
