// SPDX-License-Identifier: BSL-1.0
//
// Accuracy of a classifier.
#pragma once

#include <cstddef>
#include <span>

#include <pipe/metrics/confusion.hpp>

namespace pp {

namespace detail {

/// accuracy() for either type of scores. Counts are integers, so the order of rows changes no bit.
template <class T>
double accuracy_of(std::span<T const> outputs, std::span<int const> labels) {
  long total = 0, right = 0;
  for_each_prediction(outputs, labels, labels.empty() ? 0 : outputs.size() / labels.size(),
                      [&](int label, int predicted) { ++total, right += label == predicted; });
  if (total == 0)
    throw_error<data_error>(
        {"accuracy: expected at least 1 label other than -1, got none of ", labels.size()});
  return double(right) / double(total);
}

}  // namespace detail

/// Fraction of the labels other than -1 at which the row of scores is largest. Among equal scores
/// the first is the prediction.
///
/// shape:  outputs[n * classes], labels[n] -> a number in [0, 1]
/// throws: data_error as confusion does, and if no label counts
template <class = void>
double accuracy(std::span<float const> outputs, std::span<int const> labels) {
  return detail::accuracy_of(outputs, labels);
}
template <class = void>
double accuracy(std::span<double const> outputs, std::span<int const> labels) {
  return detail::accuracy_of(outputs, labels);
}

}  // namespace pp
