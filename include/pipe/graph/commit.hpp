// SPDX-License-Identifier: BSL-1.0
//
// The rule by which a buffer follows a statistic of the mini-batch, such as the running mean of a
// batch norm.
#pragma once

#include <pipe/base/config.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp::detail {

/// The rule by which a step writes a buffer. Each micro-batch adds to a sum, in the program of the
/// weight gradients, which runs once per micro-batch and is never recomputed; the end of the step
/// commits the sum:
///
///     buffer += momentum * (sum / (samples * terms) - buffer)
///
/// This is statistic::mean. Batch norms have the other statistics. Their sums are of differences
/// from the running mean at the beginning of the mini-batch, so that few digits cancel:
///
///     running mean      += momentum * sum / n                         n = samples * terms
///     running variance  += momentum * (v - running variance)
///     v = (sum of squares - sum^2 / n) / (n - 1), or biased: / n
///
/// law: a mini-batch writes a buffer at most once, and a rejected or skipped step does not write
///      it; the bits do not depend on stages, schedule, recomputation or threads
struct commit_rule {
  /// The buffer of a variance follows the buffer of its mean in the model.
  enum class statistic : unsigned char { mean, mean_of_differences, variance, biased_variance };
  double momentum = 0;  ///< 0: never written
  long terms = 1;       ///< terms that each sample adds to an element of the sum
  statistic of = statistic::mean;
  /// Whether the statistic is a variance, which reads the sum of its mean too.
  PIPE_HD constexpr bool is_variance() const { return of >= statistic::variance; }
};

/// An element of a buffer after a step. T: float or double; samples > 0: the samples of the
/// mini-batch; differences: for a variance, the sum of its mean.
template <class T>
PIPE_HD constexpr T committed(commit_rule const& rule, T buffer, T sum, double samples,
                              T differences = T()) {
  using statistic = commit_rule::statistic;
  double const n = samples * double(rule.terms);
  double found = double(sum) / n;
  if (rule.is_variance()) {
    double const mean = double(differences) / n, part = found - mean * mean;
    found = part > 0 ? part : 0 * part;  // NaN stays
    if (rule.of == statistic::variance) found *= n > 1 ? n / (n - 1) : 1;
  }
  if (rule.of == statistic::mean_of_differences) return buffer + T(rule.momentum) * T(found);
  return buffer + T(rule.momentum) * (T(found) - buffer);
}

}  // namespace pp::detail
PIPE_OPTIMIZED_END
