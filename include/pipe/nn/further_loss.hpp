// SPDX-License-Identifier: BSL-1.0
//
// Several losses in one model: beside the last item's first loss, others with layers and labels of
// their own, over values that were stashed on the way.
#pragma once

#include <type_traits>

#include <pipe/base/text.hpp>
#include <pipe/graph/further_loss.hpp>
#include <pipe/nn/compose.hpp>
#include <pipe/nn/loss.hpp>
#include <pipe/nn/named.hpp>

namespace pp {

/// The factor of a FurtherLoss, Numerator/Denominator >= 0; its first item. Without it 1.
template <auto Numerator, int Denominator = 1>
struct LossWeight : detail::ratio<Numerator, Denominator> {
  using quotient = detail::ratio<Numerator, Denominator>;
  static constexpr detail::option_number number = quotient::in(quotient::at_least_zero());
};

namespace detail {

/// A loss that is not there: no loss_layer.
struct no_loss {};

/// The items of a further loss, sorted: its weight, its layers, and its loss.
template <class Layers, class... Items>
struct further_items {
  using loss = no_loss;
  using chain = Seq<>;
};
template <class... L, class Loss>
struct further_items<layers<L...>, Loss> {
  using loss = Loss;
  using chain = Seq<L...>;
};
template <class... L, class First, class Second, class... Rest>
struct further_items<layers<L...>, First, Second, Rest...>
    : further_items<layers<L..., First>, Second, Rest...> {};
template <class... Items>
struct weighted_items : further_items<layers<>, Items...> {
  using weight = LossWeight<1>;
};
template <auto N, int D, class... Items>
struct weighted_items<LossWeight<N, D>, Items...> : further_items<layers<>, Items...> {
  using weight = LossWeight<N, D>;
};

/// A loss that is neither a further one nor several.
template <class L>
concept single_loss = loss_layer<L> && !requires { typename L::further; };
/// The base of Losses: First, if it is a single loss and the others are further ones; else no loss.
template <class First, class... Further>
using first_of_losses =
    std::conditional_t<single_loss<First> && (brings_further_loss<Further> && ...), First, no_loss>;

}  // namespace detail

/// A loss beside the first one, in Losses: layers over the value stashed as `Value`, if there are
/// any, and a loss of their result by the labels that a batch has under the name `Labels`.
///
///     FurtherLoss<"next", "sentence", LossWeight<1, 2>, FirstPosition, Linear<2>, CrossEntropy>
///
/// shape: labels as those of the loss; the mini-batch's are set by name: batch.set<"next">(ids)
/// names: its layers are called `Labels` in weight files: "next.1.weight"
template <Text Labels, Text Value, class... Items>
struct FurtherLoss : detail::weighted_items<Items...>::loss {
  using items = detail::weighted_items<Items...>;
  using chain = Named<Labels, typename items::chain>;
  using further = typename items::loss;
  static constexpr bool has_layers = !std::is_same_v<typename items::chain, Seq<>>;
  using parts =
      std::conditional_t<has_layers, detail::layers<chain, further>, detail::layers<further>>;
  static constexpr Text name = Labels;
  static constexpr Text key = Value;
  static constexpr bool is_further_loss = true;
  static constexpr double weight() { return items::weight::quotient::template value<double>(); }

  /// Describes the layers and the loss, and restores the current value.
  template <class Builder>
  static constexpr void describe(Builder& b) {
    if constexpr (!detail::loss_layer<further>)
      b.report(wrong::loss_is_missing_at_the_end_of_the_model);
    else if (b.needs_ratio(items::weight::number))
      b.template further_loss<FurtherLoss>();
  }
};

/// The last item of a model with several losses: the first loss, of the value before it, and
/// further ones. The loss of a mini-batch is the first loss plus the sum of weight times each
/// further one, each the mean over its own terms.
///
/// law: with one loss it is that loss; the others are computed where the model ends, so no cut
///      separates them
template <class First, class... Further>
struct Losses : detail::first_of_losses<First, Further...> {
  using parts = detail::layers<First, Further...>;
  using further = detail::layers<Further...>;
  template <class Builder>
  static constexpr void describe(Builder& b) {
    if constexpr (detail::loss_layer<Losses>) {
      (Further::describe(b), ...);
      if (b.ok()) First::describe(b);
    }
  }
};

}  // namespace pp
