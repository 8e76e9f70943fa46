// SPDX-License-Identifier: BSL-1.0
//
// Gradient accumulation over mini-batches. Backward divides all gradients by the number of terms of
// the first mini-batch; a factor at the end corrects this once the number of all terms is known.
#pragma once

#include <pipe/runtime/job.hpp>

namespace pp::detail {

/// Loss and scale factors of accumulated mini-batches.
///
/// law: n mini-batches added one by one have the loss and the gradient scale of one mini-batch with
///      all of their terms
class accumulation {
 public:
  int count() const { return count_; }

  /// Sets a job's scale factors so that it continues the accumulation. `sums`: the loss is a sum,
  /// not a mean.
  void extend(job& j, bool sums) {
    if (count_ == 0) first_terms_ = j.loss_terms;
    counted_ = sums ? 1 : counted_ + j.counted;
    j.continues = count_ > 0;
    j.first_sample = samples_;
    j.all_samples = samples_ + j.samples;
    j.gradient_terms = first_terms_;
    j.gradient_scale = first_terms_ / terms();
  }
  /// Adds a finished job. Returns the loss over all terms so far.
  double add(job const& j, double loss) {
    loss_ += loss * j.loss_terms;
    samples_ += j.samples;
    return ++count_ > 1 ? loss_ / terms() : loss;
  }

  /// Calls use(number) with all that it is, to be read or set: for checkpoints.
  template <class Use>
  void for_each_number(Use use) {
    use(count_), use(first_terms_), use(counted_), use(loss_), use(samples_);
  }

 private:
  /// The divisor of the loss of all mini-batches, as job::loss_terms for one.
  double terms() const { return counted_ > 0 ? counted_ : 1; }

  int count_ = 0;
  // Terms of the first mini-batch, by which all gradients are divided; terms of all.
  double first_terms_ = 0, counted_ = 0;
  double loss_ = 0;  // summed over all terms
  long samples_ = 0;
};

}  // namespace pp::detail
