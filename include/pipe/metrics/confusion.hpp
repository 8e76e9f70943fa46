// SPDX-License-Identifier: BSL-1.0
//
// The confusion matrix of a classifier: the basis of accuracy, precision and recall.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <pipe/base/checked_index.hpp>
#include <pipe/base/error.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/data/batch_check.hpp>
#include <pipe/metrics/argmax.hpp>

namespace pp {

/// Counts of samples by label and predicted class.
struct confusion_matrix {
  int classes = 0;
  std::vector<long> counts;  ///< [label][predicted]

  /// Number of samples with a label and a prediction. Throws data_error for a class out of range.
  long operator()(int label, int predicted) const {
    for (int const c : {label, predicted}) detail::checked_index<data_error>("class", c, classes);
    return counts[std::size_t(label) * std::size_t(classes) + std::size_t(predicted)];
  }
  /// Number of labels that are not -1.
  long total() const {
    long n = 0;
    for (long c : counts) n += c;
    return n;
  }
  /// Number of correct predictions.
  long right() const {
    long n = 0;
    for (int c = 0; c < classes; ++c) n += (*this)(c, c);
    return n;
  }
};

namespace detail {

/// Checks that there are `classes` scores for each label.
///
/// throws: data_error for fewer than 2 classes, or outputs.size() != labels.size() * classes
template <class T>
void check_scores(std::span<T const> outputs, std::span<int const> labels, std::size_t classes) {
  if (classes < 2 || outputs.size() / classes != labels.size() || outputs.size() % classes != 0)
    throw_error<data_error>(
        {"outputs: expected ", classes < 2 ? "at least 2" : "an equal number of",
         " scores for each label, got ", outputs.size(), " scores for ", labels.size(), " labels"});
}

/// Calls use(label, predicted) for every label that is not -1, in order. Throws as confusion does.
template <class T, class Use>
void for_each_prediction(std::span<T const> outputs, std::span<int const> labels,
                         std::size_t classes, Use const& use) {
  check_scores(outputs, labels, classes);
  check_ids("label", labels, -1, int(classes));
  for (std::size_t i = 0; i < labels.size(); ++i)
    if (labels[i] >= 0) use(labels[i], argmax(outputs.subspan(i * classes, classes)));
}

/// The confusion matrix of scores of type T, see confusion. Sizes are checked before the matrix is
/// allocated.
template <class T>
confusion_matrix confusion_of(std::span<T const> outputs, std::span<int const> labels,
                              int classes) {
  std::size_t const n = classes < 0 ? 0 : std::size_t(classes);
  check_scores(outputs, labels, n);
  confusion_matrix m{classes, std::vector<long>(n * n)};
  for_each_prediction(outputs, labels, n, [&](int label, int predicted) {
    ++m.counts[std::size_t(label) * n + std::size_t(predicted)];
  });
  return m;
}

}  // namespace detail

/// The confusion matrix of scores. The prediction of a row is the class of its largest score, the
/// first of equal scores; labels of -1 are not counted.
///
/// shape:  outputs[n * classes], labels[n] -> counts[classes * classes]
/// throws: data_error for sizes that do not match, a label out of range, or NaN in a row that
///         counts
template <class = void>
confusion_matrix confusion(std::span<float const> outputs, std::span<int const> labels,
                           int classes) {
  return detail::confusion_of(outputs, labels, classes);
}
template <class = void>
confusion_matrix confusion(std::span<double const> outputs, std::span<int const> labels,
                           int classes) {
  return detail::confusion_of(outputs, labels, classes);
}

}  // namespace pp
