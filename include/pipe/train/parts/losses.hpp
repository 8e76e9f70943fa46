// SPDX-License-Identifier: BSL-1.0
//
// The losses of a trainer's model: their names, values and terms.
#pragma once

#include <string_view>

#include <pipe/base/error.hpp>
#include <pipe/base/list.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/graph/further_loss.hpp>
#include <pipe/graph/layers.hpp>
#include <pipe/runtime/job.hpp>
#include <pipe/runtime/loss_values.hpp>
#include <pipe/train/parts/batch.hpp>
#include <pipe/train/parts/prefetched.hpp>
#include <pipe/train/parts/refused_calls.hpp>

namespace pp::detail {

/// The names of the losses of a model that ends in Loss, which are the names of their labels in a
/// batch.
template <class Loss>
constexpr list<std::string_view, losses_in<Loss>> names_of_losses() {
  list<std::string_view, losses_in<Loss>> all{{"labels"}};
  if constexpr (losses_in<Loss> > 1)
    [&]<class... S>(layers<S...>) {
      int i = 0;
      ((all[++i] = S::name.view()), ...);
    }(typename Loss::further{});
  return all;
}

/// A trainer of a model with one loss or several losses.
template <class Trainer, class M>
struct with_losses {
  /// The names of the model's losses: those of their labels in a batch, "labels" for the first one.
  static constexpr list<std::string_view, losses_in<typename M::loss>> loss_names =
      names_of_losses<typename M::loss>();

  /// The divisor of the mean loss of a mini-batch; in a model with several losses, of the first
  /// loss. It is the sum of the weights of rows with a label of 0 or more, or of elements; each
  /// weighs 1 if the loss has no weights. In an average over mini-batches the divisor is the weight
  /// of a mini-batch's loss. 0 if no term counts; 1 for a loss that is a sum. Accepts any number of
  /// labels.
  ///
  /// throws: data_error for labels and weights that evaluate rejects
  template <class T = Trainer>
  static double loss_terms(typename T::batch const& b) {
    return loss_terms_of(b);
  }
  /// The loss of a mini-batch; NaN if no label counts. Does not change the trainer, so a loss that
  /// is not finite is returned, not thrown.
  template <class T = Trainer>
  double evaluate(typename T::batch const& b) {
    T& t = static_cast<T&>(*this);
    return evaluated(t, t.engine_.enter(), b).loss;
  }
  template <class T = Trainer>
  double evaluate(typename T::device_batch const& b) {
    T& t = static_cast<T&>(*this);
    return evaluated(t, t.enter_with_device_data(), b).loss;
  }
  template <class T = Trainer>
  double evaluate(prefetched_batch b) {
    T& t = static_cast<T&>(*this);
    return evaluated(t, t.enter_with_prefetched(), b).loss;
  }
  template <labels_alone Labels>
  double evaluate(auto const&, Labels const&) {
    return refused_call<Trainer, double, Labels>();
  }
  /// Evaluates each loss of a mini-batch, in the order of loss_names.
  template <class T = Trainer>
  loss_values evaluate_losses(typename T::batch const& b) {
    T& t = static_cast<T&>(*this);
    return evaluated(t, t.engine_.enter(), b).losses;
  }
  template <class T = Trainer>
  loss_values evaluate_losses(typename T::device_batch const& b) {
    T& t = static_cast<T&>(*this);
    return evaluated(t, t.enter_with_device_data(), b).losses;
  }
  /// Counts the terms of a mini-batch of the next step ahead: for mini-batches that are accumulated
  /// and whose losses have terms in different proportions. Gradients are one sum over all losses:
  /// one factor can correct the sum at the end, but not one factor for each loss. All mini-batches
  /// of a step are counted before the first is accumulated, in any order; if none is counted, each
  /// is divided in the proportion of the first. Parameters that change from outside, and a run that
  /// fails, forget what was counted. All processes call it.
  ///
  /// law:    gradients are then those of a single mini-batch with all samples, up to rounding
  /// throws: data_error as evaluate; error if mini-batches are accumulated already. The step throws
  ///         data_error if the proportions of the terms are not those that were counted
  template <class T = Trainer>
  void count_terms(typename T::batch const& b) {
    T& t = static_cast<T&>(*this);
    count_on(t, t.engine_.enter(), b);
  }
  template <class T = Trainer>
  void count_terms(typename T::device_batch const& b) {
    T& t = static_cast<T&>(*this);
    count_on(t, t.enter_with_device_data(), b);
  }

 private:
  template <class T, class Access, class Batch>
  static step_result evaluated(T& t, Access const&, Batch const& b) {
    return t.run(t.prepare(b, job::kind::evaluate));
  }
  template <class T, class Access, class Batch>
  static void count_on(T& t, Access const&, Batch const& b) {
    if (t.accumulated_.count() > 0)
      throw_error<error>({"count_terms(): ", t.accumulated_.count(),
                          " mini-batches of this step are accumulated already: count all of them "
                          "before the first"});
    t.accumulated_.count_ahead(t.prepare(b, job::kind::train), M::loss::sums);
  }
};

}  // namespace pp::detail
