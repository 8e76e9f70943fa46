// SPDX-License-Identifier: BSL-1.0
//
// The predicted class of a row of scores.
#pragma once

#include <cstddef>
#include <span>

#include <pipe/base/error.hpp>
#include <pipe/base/sentence.hpp>

namespace pp {

namespace detail {

/// argmax() for either type of scores.
///
/// cost: one pass; NaN is found by x != x on the way
template <class T>
int argmax_of(std::span<T const> scores) {
  if (scores.empty()) throw_error<data_error>({"argmax: expected at least 1 score, got none"});
  std::size_t best = 0;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    if (scores[i] != scores[i])
      throw_error<data_error>({"argmax: score ", i, " of ", scores.size(), " is not a number"});
    if (scores[i] > scores[best]) best = i;
  }
  return int(best);
}

}  // namespace detail

/// Index of the largest score, the first of equal scores.
///
/// throws: data_error for an empty list or a NaN
template <class = void>
int argmax(std::span<float const> scores) {
  return detail::argmax_of(scores);
}
template <class = void>
int argmax(std::span<double const> scores) {
  return detail::argmax_of(scores);
}

}  // namespace pp
