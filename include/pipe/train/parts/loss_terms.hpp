// SPDX-License-Identifier: BSL-1.0
//
// The divisor of a mini-batch's mean loss.
#pragma once

#include <cstddef>
#include <span>

#include <pipe/data/batch_check.hpp>
#include <pipe/graph/loss_labels.hpp>

namespace pp::detail {

/// Sum of the weights of a mini-batch's loss terms, 1 each for a loss without weights. Terms are
/// rows whose label is not -1 if labels are ids, rows if the loss is a formula of rows, else
/// elements. 0 if no term counts; 1 under Reduction<Sum>.
///
/// shape:  labels [rows], or [rows * columns] for real targets; for a formula of rows as many as
///         the formula says; weights [rows], empty if the loss has none
/// throws: data_error for a label or a weight out of range, or a number of weights other than the
///         number of rows
template <class Loss, class Label, class Weight>
double loss_terms(std::span<Label const> labels, std::span<Weight const> weights, int columns,
                  long rows) {
  if constexpr (Loss::labels_are_ids)
    check_ids("label", labels, -1, int(columns));
  else
    check_targets<Loss>(labels);
  if constexpr (Loss::is_weighted)
    check_size({"input ", Loss::weights::name.view()}, weights.size(),
               Loss::labels_are_ids ? labels.size()
               : counts_rows<Loss>  ? std::size_t(rows)
                                    : labels.size() / std::size_t(columns));
  check_weights(weights);
  // A loss that sums its terms has no divisor; labels and weights have been checked all the same.
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
    count = counts_rows<Loss> ? double(rows) : double(labels.size());
  } else {
    for (Weight const w : weights) count += double(w) * double(terms_of_row<Loss>(columns));
  }
  return count;
}

}  // namespace pp::detail
