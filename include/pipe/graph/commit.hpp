// SPDX-License-Identifier: BSL-1.0
//
// The rule by which a buffer follows a statistic of the mini-batch, such as the running mean of a
// batch norm.
#pragma once

#include <pipe/base/config.hpp>

namespace pp::detail {

/// How a step writes a buffer. Each micro-batch adds to a sum, in the program of the weight
/// gradients, which runs once per micro-batch and is never recomputed; the end of the step commits
/// the sum:
///
///     buffer += momentum * (sum / (samples * terms) - buffer)
///
/// law: a mini-batch writes a buffer at most once, and a rejected or skipped step does not write
///      it; the bits do not depend on stages, schedule, recomputation or threads
struct commit_rule {
  float momentum = 0;  ///< 0: never written
  long terms = 1;      ///< terms that each sample adds to an element of the sum
};

/// An element of a buffer after a step. T: float or double; samples > 0 of the mini-batch.
template <class T>
PIPE_HD constexpr T committed(commit_rule const& rule, T buffer, T sum, double samples) {
  T const mean = T(double(sum) / (samples * double(rule.terms)));
  return buffer + T(rule.momentum) * (mean - buffer);
}

}  // namespace pp::detail
