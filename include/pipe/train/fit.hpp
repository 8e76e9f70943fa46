// SPDX-License-Identifier: BSL-1.0
//
// Training until a validation loss no longer falls, with the best weights at the end.
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include <pipe/base/error.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/train/batches.hpp>
#include <pipe/train/evaluate_all.hpp>
#include <pipe/weights/parameter_view.hpp>

namespace pp {

namespace detail {

/// The losses of an epoch of fit().
struct fitted_epoch {
  long epoch = 0;              ///< from 0
  double training_loss = 0;    ///< the mean of the losses of the epoch's steps
  double validation_loss = 0;  ///< after the epoch
  bool is_best = false;        ///< lower than after every epoch before
};
/// What fit() did.
struct fit_result {
  std::vector<fitted_epoch> epochs;
  long best = -1;            ///< the epoch with the lowest validation loss
  double best_loss = 0;      ///< after it
  bool has_stopped = false;  ///< before the last epoch that was allowed
};
/// When fit() stops, and what it calls.
struct fit_settings {
  long epochs = 100;      ///< at most
  long patience = 10;     ///< epochs without a lower validation loss, after which it stops
  double least_gain = 0;  ///< by which a loss is lower
  bool shuffle = true;
  std::uint64_t seed = 0;     ///< of the orders of the samples
  bool restores_best = true;  ///< whether the weights of the best epoch are those at the end
  /// Called after each epoch; false stops.
  std::function<bool(fitted_epoch const&)> after_epoch{};
};

/// Copies of the values of all parameters that this process has.
template <class Trainer>
class kept_weights {
 public:
  void keep(Trainer& t) {
    std::size_t i = 0;
    for_each_parameter(t, [&](auto const& p) {
      if (i == values_.size()) values_.emplace_back();
      values_[i++].assign(p.values.begin(), p.values.end());
    });
  }
  void restore(Trainer& t) const {
    std::size_t i = 0;
    for_each_parameter(t, [&](auto const& p) {
      std::copy(values_[i].begin(), values_[i].end(), p.values.begin());
      ++i;
    });
    t.parameters_changed();
  }

 private:
  std::vector<std::vector<typename Trainer::element>> values_;
};

}  // namespace detail

/// Trains until the loss of `validation` has not fallen for some epochs, and leaves the trainer
/// with the weights of the best epoch. State of the optimizer and averages are those of the last
/// step.
///
///     auto const found = fit(trainer, {x, y}, {held_out_x, held_out_y}, {.patience = 5});
///
/// law: the same calls as batches(), step() and evaluate_all() by hand, so the same bits
/// throws: data_error as these do, for a setting out of range, and for a validation loss that is
///         not a number
template <class Trainer>
detail::fit_result fit(Trainer& trainer, typename Trainer::batch const& training,
                       typename Trainer::batch const& validation,
                       detail::fit_settings const& with = detail::fit_settings{}) {
  if (with.epochs < 1 || with.patience < 1 || !(with.least_gain >= 0))
    detail::throw_error<data_error>(
        {"fit: expected 1 epoch or more, a patience of 1 or more and a "
         "least gain of 0 or more, got ",
         with.epochs, ", ", with.patience, " and ", with.least_gain});
  detail::fit_result result;
  detail::kept_weights<Trainer> best;
  for (long epoch = 0; epoch < with.epochs; ++epoch) {
    double sum = 0;
    long steps = 0;
    for (auto const& batch : batches<Trainer>(training, {.shuffle = with.shuffle,
                                                         .seed = with.seed,
                                                         .epoch = epoch,
                                                         .samples = trainer.batch_samples()})) {
      sum += trainer.step(batch).loss;
      ++steps;
    }
    double const loss = evaluate_all(trainer, validation);
    if (loss != loss)
      detail::throw_error<data_error>(
          {"fit: the loss of the validation data is not a number after epoch ", epoch});
    bool const is_best = result.best < 0 || loss < result.best_loss - with.least_gain;
    result.epochs.push_back({epoch, sum / double(steps), loss, is_best});
    if (is_best) {
      result.best = epoch, result.best_loss = loss;
      if (with.restores_best) best.keep(trainer);
    }
    bool const goes_on = !with.after_epoch || with.after_epoch(result.epochs.back());
    if (!goes_on || epoch - result.best >= with.patience) {
      result.has_stopped = epoch + 1 < with.epochs;
      break;
    }
  }
  if (with.restores_best && result.best != result.epochs.back().epoch) best.restore(trainer);
  return result;
}

}  // namespace pp
