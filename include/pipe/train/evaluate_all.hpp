// SPDX-License-Identifier: BSL-1.0
//
// The loss of a data set of any size.
#pragma once

#include <pipe/base/config.hpp>
#include <pipe/graph/further_loss.hpp>
#include <pipe/runtime/job.hpp>
#include <pipe/runtime/loss_values.hpp>
#include <pipe/train/batches.hpp>
#include <pipe/train/parts/batch.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp {

namespace detail {

/// Evaluates a data set, and sets `losses`. Returns the loss over all labels: see loss_of.
template <class Trainer>
double evaluate_data(Trainer& trainer, typename Trainer::batch const& data, loss_values& losses) {
  job_loss all;
  double sums[most_losses]{}, counted = 0;
  batches<Trainer> all_batches(
      data, {.samples = trainer.batch_samples(), .by_length = data_set::takes_lengths<Trainer>});
  for (auto const& batch : all_batches) {
    job_loss here;
    count_loss_terms(batch, here);
    loss_values const means = trainer.evaluate_losses(batch);
    // Without terms the mean is NaN.
    for (int i = 0; i <= here.further.count; ++i)
      if (double const n = here.terms_of(i); n > 0) sums[i] += means[i] * n;
    counted += here.counted;
    for (int i = 0; i < here.further.count; ++i)
      here.further.items[i].counted += all.further.items[i].counted;
    all.further = here.further;
  }
  // A loss that is a sum has no divisor.
  all.count(Trainer::model::loss::sums ? 1 : counted);
  for (further_loss& f : all.further.items)
    if (f.sums) f.counted = 1;
  losses = all.means_of(sums);
  return loss_of(losses, all.further, [&](int i) { return all.terms_of(i); });
}

}  // namespace detail

/// The loss over all labels of a data set: a mean unless the loss is a sum; NaN if no label counts.
/// Does not change the trainer.
///
/// law: equals the loss of all samples as one mini-batch, up to rounding: the loss of a mini-batch
///      is weighted by its number of terms. With Lengths its samples have like lengths.
/// throws: data_error as batches and Trainer::evaluate do
template <class Trainer>
double evaluate_all(Trainer& trainer, typename Trainer::batch const& data) {
  loss_values losses;
  return detail::evaluate_data(trainer, data, losses);
}

/// Each loss over all labels of a data set, in the order of Trainer::loss_names: see evaluate_all.
template <class Trainer>
loss_values evaluate_all_losses(Trainer& trainer, typename Trainer::batch const& data) {
  loss_values losses;
  detail::evaluate_data(trainer, data, losses);
  return losses;
}

}  // namespace pp
PIPE_OPTIMIZED_END
