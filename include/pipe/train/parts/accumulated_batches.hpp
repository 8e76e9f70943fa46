// SPDX-License-Identifier: BSL-1.0
//
// Gradient accumulation over mini-batches. Backward divides the gradients of each loss by its
// number of terms in the first mini-batch, or by the number counted ahead. A factor of all
// gradients, at the end, corrects the divisor once the number of all terms is known.
#pragma once

#include <string_view>

#include <pipe/base/error.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/runtime/job.hpp>

namespace pp::detail {

/// throws: data_error unless a step has labels to learn from
inline void require_terms(bool has_some) {
  if (!has_some)
    throw_error<data_error>(
        {"labels: none of this step counts, so it has no loss: leave its mini-batch out"});
}

/// Losses and scale factors of accumulated mini-batches, for a model with `Losses` losses.
///
/// law: n mini-batches added one by one have the losses and the gradient scales of one mini-batch
///      with all of their terms
template <int Losses>
class accumulated_batches {
 public:
  int count() const { return count_; }

  /// Counts the terms of a mini-batch of the next step ahead. `sums`: the first loss is a sum, not
  /// a mean.
  void count_ahead(job const& j, bool sums) {
    for_each_loss(j, sums, [](of_loss& of, double counted, bool is_sum) {
      of.ahead = is_sum ? 1 : of.ahead + counted;
    });
  }
  /// Sets a job's scale factors so that the job continues the accumulation. names: the losses'
  /// names
  ///
  /// throws: data_error in a step without terms, or if no factor is right for all losses, because
  ///         the divisors have another proportion than the terms
  void extend(job& j, bool sums, [[maybe_unused]] std::string_view const* names) {
    for_each_loss(j, sums, [this](of_loss& of, double counted, bool is_sum) {
      if (count_ == 0) of.divisor = loss_divisor(of.ahead > 0 ? of.ahead : counted);
      of.counted = is_sum ? 1 : of.counted + counted;
    });
    if (j.update.applies) require_terms(has_terms(j.loss.further, terms()));
    j.part.continues = count_ > 0;
    j.part.first_sample = samples_;
    j.update.samples = samples_ + j.batch.samples;
    j.loss.gradient_terms = of_[0].divisor;
    if constexpr (Losses > 1) {
      for (int i = 1; i < Losses; ++i)
        further(j, i).factor = further(j, i).weight * of_[0].divisor / of_[i].divisor;
      j.update.gradient_scale = scale_of_all(j, names);
    } else {
      j.update.gradient_scale = of_[0].divisor / loss_divisor(of_[0].counted);
    }
  }
  /// Adds a finished job. The losses of its result become the losses over all terms so far: see
  /// loss_of.
  void add(job const& j, step_result& r) {
    of_[0].sum += r.losses[0] * j.loss.terms;
    for (int i = 1; i < Losses; ++i)
      of_[i].sum += r.losses[i] * loss_divisor(further(j, i).counted);
    samples_ += j.batch.samples;
    if (++count_ > 1)
      for (int i = 0; i < Losses; ++i)
        r.losses.items[i] = of_[i].sum / loss_divisor(of_[i].counted);
    r.loss = loss_of(r.losses, j.loss.further, terms());
  }

  /// Calls use(number) for all numbers of the accumulation, to be read or set: for checkpoints.
  template <class Use>
  void for_all_numbers(Use use) {
    of_loss& first = of_[0];
    use(count_), use(first.divisor), use(first.counted), use(first.sum), use(samples_);
    for (int i = 1; i < Losses; ++i) use(of_[i].divisor), use(of_[i].counted), use(of_[i].sum);
  }

 private:
  struct of_loss {
    double ahead = 0;             // terms counted ahead
    double divisor = 0;           // of the gradients
    double counted = 0, sum = 0;  // all terms, and their sum
  };

  auto terms() const {
    return [this](int i) { return of_[Losses > 1 ? i : 0].counted; };
  }
  /// Loss i of a job, not the first.
  static further_loss const& further(job const& j, int i) { return j.loss.further.items[i - 1]; }
  static further_loss& further(job& j, int i) { return j.loss.further.items[i - 1]; }
  /// use(loss, sum of the weights of a job's terms, whether it is a sum)
  template <class Use>
  void for_each_loss(job const& j, bool sums, Use const& use) {
    use(of_[0], j.loss.counted, sums);
    for (int i = 1; i < Losses; ++i) use(of_[i], further(j, i).counted, further(j, i).sums);
  }
  /// The factor of the gradients of all losses that count: divisor over terms.
  double scale_of_all(job const& j, std::string_view const* names) const {
    int by = -1;  // the first loss that counts
    for (int i = 0; i < Losses; ++i) {
      of_loss const& of = of_[i];
      if (!(of.counted > 0) || (i > 0 && !(further(j, i).weight > 0))) continue;
      if (by < 0) by = i;
      double const here = of.divisor * of_[by].counted, there = of_[by].divisor * of.counted,
                   apart = here > there ? here - there : there - here;
      if (j.update.applies && apart > 1e-9 * here)
        throw_error<data_error>(
            {"step(): the gradients of ", count_ + 1, " mini-batches with ", of_[by].counted,
             " terms of the loss '", names[by], "' and ", of.counted, " of '", names[i],
             "' were divided as if they had ", of_[by].divisor, " and ", of.divisor,
             ": call count_terms() with each of them, and no other, before the first"});
    }
    return by < 0 ? 1 : of_[by].divisor / of_[by].counted;
  }

  int count_ = 0;
  of_loss of_[Losses];
  long samples_ = 0;
};

}  // namespace pp::detail
