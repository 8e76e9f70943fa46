// SPDX-License-Identifier: BSL-1.0
//
// The options of losses: further inputs from the batch, weights of rows, and the reduction to the
// loss of a mini-batch. Everything that a loss reads by name is a further input of the model that
// only the loss sees: `batch.set<"weight">(numbers)`.
#pragma once

#include <concepts>
#include <cstddef>
#include <type_traits>
#include <utility>

#include <pipe/base/text.hpp>
#include <pipe/graph/builder.hpp>
#include <pipe/nn/ratio.hpp>

namespace pp {

/// The sum of weight times term over the sum of the weights: see Reduction.
struct Mean;
/// The sum of weight times term: see Reduction.
struct Sum;

/// The loss of a mini-batch: the mean of its terms (default), or their sum. With weights the mean
/// is the sum of weight times term over the sum of the weights, as in PyTorch's cross_entropy.
template <class How>
struct Reduction {
  static constexpr bool sums = std::is_same_v<How, Sum>;
  static constexpr auto option = sums || std::is_same_v<How, Mean> ? detail::option_kind::reduction
                                                                   : detail::option_kind::none;
};

/// A weight for each row of the model's output (for each sample, if the output is one row), in the
/// batch under this name: finite and >= 0. Numbers that may be negative, such as advantages, are a
/// Target instead.
///
/// shape: numbers [rows of the output]
template <Text Name>
struct Weights {
  static constexpr auto option = detail::option_kind::weights;
  static constexpr Text name = Name;
};

/// Further numbers that a formula reads, in the batch under this name. A loss may have several; its
/// functions take them in this order.
///
/// shape: that of the output for an ElementLoss, [rows of the output] for a LabelLoss
template <Text Name>
struct Target {
  static constexpr auto option = detail::option_kind::target;
  static constexpr bool repeats = true;
  static constexpr Text name = Name;
};

/// The weight of a row by the class of its label: PyTorch's weight=. Integers >= 0, one for each
/// class, at least one above 0; under a mean only their ratios matter.
template <int... Each>
struct ClassWeights {
  static constexpr auto option = detail::option_kind::class_weights;
  static constexpr int count = sizeof...(Each);
  static constexpr long sum = (0L + ... + Each);
  static constexpr detail::option_number number{((Each >= 0) && ...) && sum > 0,
                                                int((0 + ... + (Each < 0 ? Each : 0))), 1};

  /// The weight of a class.
  ///
  /// needs: label in [0, count)
  template <class T>
  PIPE_HD static PIPE_INLINE constexpr T of(int label) {
    constexpr T each[] = {T(Each)..., T(0)};
    return each[label];
  }
};

/// The factor of the positive part of a BCE, Numerator / Denominator > 0: PyTorch's pos_weight, the
/// same for every element.
template <auto Numerator, int Denominator = 1>
struct PosWeight : detail::ratio<Numerator, Denominator> {
  using quotient = detail::ratio<Numerator, Denominator>;
  static constexpr auto option = detail::option_kind::positive_weight;
  static constexpr detail::option_number number = quotient::in(quotient::positive());
};

namespace detail {

/// Base of every loss: the properties that its options give it.
template <class... Options>
struct loss_with {
  using options = layers<Options...>;
  using parts = options;  // so that an input finds its name among the leaves of the model
  using weights = option_of<option_kind::weights, Options...>;
  using class_weights = option_of<option_kind::class_weights, Options...>;
  static constexpr bool is_weighted = !std::is_void_v<weights>;
  static constexpr bool weighs_classes = !std::is_void_v<class_weights>;
  static constexpr int targets = (0 + ... + int(kind_of<Options>() == option_kind::target));
  static constexpr bool sums = [] {
    using reduction = option_of<option_kind::reduction, Options...>;
    if constexpr (std::is_void_v<reduction>)
      return false;
    else
      return reduction::sums;
  }();

  /// Adds the further inputs of the loss. `target`: the shape of its Targets.
  template <class Builder>
  static constexpr loss_operands further_inputs(Builder& b, sample_shape target) {
    loss_operands in;
    int target_count = 0;
    (further_input<Options>(b, target, in, target_count), ...);
    (void)b, (void)target, (void)target_count;
    return in;
  }

 private:
  template <class O, class Builder>
  static constexpr void further_input(Builder& b, sample_shape target, loss_operands& in,
                                      int& target_count) {
    if constexpr (kind_of<O>() == option_kind::weights)
      in.weights = b.template loss_input<O>(sample_shape(b.current().form.rows()));
    else if constexpr (kind_of<O>() == option_kind::target)
      if (operand const at = b.template loss_input<O>(target); b.ok())
        in.target[target_count++] = at;
    (void)b, (void)target, (void)in, (void)target_count;
  }
};

/// Whether F::value (has_slope: F::slope) is a function of these arguments that returns float.
template <class F, class... T>
concept has_value = requires(T... x) {
  { F::value(x...) } -> std::same_as<float>;
};
template <class F, class... T>
concept has_slope = requires(T... x) {
  { F::slope(x...) } -> std::same_as<float>;
};
/// The member that F lacks as a formula of that number of arguments, or `none`.
template <class F, int Numbers>
constexpr wrong::member missing_of_loss() {
  return []<std::size_t... Is>(std::index_sequence<Is...>) {
    if constexpr (!has_value<F, decltype(float(Is))...>)
      return wrong::member::value;
    else
      return has_slope<F, decltype(float(Is))...> ? wrong::member::none : wrong::member::slope;
  }(std::make_index_sequence<std::size_t(Numbers)>{});
}

/// Describes a loss with these options that is a formula F of `Numbers` numbers and of its Targets,
/// which have shape `target`.
template <class F, int Numbers, class Builder, class... Options>
constexpr void describe_formula(Builder& b, op_kind kind, loss_with<Options...>,
                                sample_shape target) {
  constexpr wrong::member missing = missing_of_loss<F, Numbers + loss_with<Options...>::targets>();
  if constexpr (missing != wrong::member::none) {
    b.report_missing(wrong::loss_needs_value_and_slope, missing);
  } else if (b.needs_numbers()) {
    loss_operands in = loss_with<Options...>::further_inputs(b, target);
    in.cross_entropy.term = row_term::formula;
    b.loss(kind, b.current(), in);
  }
}

}  // namespace detail

}  // namespace pp
