// SPDX-License-Identifier: BSL-1.0
//
// The divisor of a mini-batch's loss.
#pragma once

#include <cstddef>
#include <span>

#include <pipe/train/parts/batch_check.hpp>

namespace pp::detail {

/// The sum of the weights of a mini-batch's terms, each of which is 1 without weights: a mean is
/// over so much. A term is a row whose label is not -1, or else an element. 0 if nothing counts; 1
/// under Reduction<Sum>.
///
/// shape:  labels [n rows], or [n rows * columns] of numbers; weights [n rows], or none if the loss
///         takes none
/// throws: data_error for a label or a weight out of its range, or another number of weights than
///         of rows
template <class Loss, class Label, class Weight>
double loss_terms(std::span<Label const> labels, std::span<Weight const> weights, long columns) {
  if constexpr (Loss::labels_are_ids)
    check_ids("label", labels, -1, int(columns));
  else
    check_targets<Loss>(labels);
  if constexpr (Loss::is_weighted)
    check_size({"input ", Loss::weights::name.view()}, weights.size(),
               labels.size() / std::size_t(Loss::labels_are_ids ? 1 : columns));
  check_weights(weights);
  if (Loss::sums) return 1;
  auto const weight = [&](std::size_t row) { return weights.empty() ? 1.0 : double(weights[row]); };
  double count = 0;
  if constexpr (Loss::labels_are_ids) {
    for (std::size_t row = 0; row < labels.size(); ++row) {
      int const label = labels[row];
      if (label < 0) continue;
      if constexpr (Loss::weighs_classes)
        count += weight(row) * Loss::class_weights::template of<double>(label);
      else
        count += weight(row);
    }
  } else if (weights.empty()) {
    count = double(labels.size());
  } else {
    for (Weight const w : weights) count += double(w) * double(columns);
  }
  return count;
}

}  // namespace pp::detail
