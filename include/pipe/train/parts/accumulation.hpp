// SPDX-License-Identifier: BSL-1.0
//
// Mini-batches whose gradients wait for a step. Gradients are made as if the first were alone, and
// scaled at the end, when the number of all terms is known.
#pragma once

#include <pipe/runtime/job.hpp>

namespace pp::detail {

/// law: n mini-batches that are added one by one have the loss, and the scale of gradients, of one
///      with all of their terms
class accumulation {
 public:
  int count() const { return count_; }

  /// Lets a job continue what was accumulated. Sums: the loss is a sum, not a mean.
  void extend(job& j, bool sums) {
    if (count_ == 0) first_terms_ = j.loss_terms;
    counted_ = sums ? 1 : counted_ + j.counted;
    j.continues = count_ > 0;
    j.first_sample = samples_;
    j.gradient_terms = first_terms_;
    j.gradient_scale = first_terms_ / terms();
  }
  /// Adds the job's result; returns the loss over all terms.
  double add(job const& j, double loss) {
    loss_ += loss * j.loss_terms;
    samples_ += j.samples;
    return ++count_ > 1 ? loss_ / terms() : loss;
  }

 private:
  double terms() const { return counted_ > 0 ? counted_ : 1; }

  int count_ = 0;
  double first_terms_ = 0, counted_ = 0;
  double loss_ = 0;  // summed over all terms
  long samples_ = 0;
};

}  // namespace pp::detail
