// SPDX-License-Identifier: BSL-1.0
//
// The loss of a data set of any size.
#pragma once

#include <pipe/train/batches.hpp>

namespace pp {

/// The loss over all labels of a data set: a mean unless the loss is a sum; 0 if no label counts.
/// Does not change the trainer.
///
/// law: equals the loss of all samples as one mini-batch, up to rounding: mini-batches are weighted
///      by their loss terms
/// throws: data_error as batches and Trainer::evaluate do
template <class Trainer>
double evaluate_all(Trainer& trainer, typename Trainer::batch const& data) {
  double sum = 0, terms = 0;
  for (auto const& batch : batches<Trainer>(data, {.samples = trainer.batch_samples()})) {
    double const n = Trainer::loss_terms(batch);
    sum += trainer.evaluate(batch) * n;
    terms += n;
  }
  if (Trainer::model::loss::sums) return sum;
  return terms > 0 ? sum / terms : 0;
}

}  // namespace pp
