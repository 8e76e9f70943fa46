// SPDX-License-Identifier: BSL-1.0
//
// Settings of groups of layers, as wrappers around them: frozen, with another learning rate or
// weight decay, or with more places for cuts. The model may be cut between the layers inside as if
// the wrapper were absent. Around a single layer it does not change the names of parameters.
#pragma once

#include <pipe/graph/builder.hpp>
#include <pipe/graph/layers.hpp>
#include <pipe/nn/ratio.hpp>

namespace pp {

/// Layers whose parameters are not trained: no gradients, no optimizer state, no work for them.
/// Gradients still pass through to trained parameters before them. Inside a LoRA they are not
/// adapted.
template <class... L>
struct Frozen {
  using parts = detail::layers<L...>;
  static constexpr bool decorates = true;
  static constexpr int times = 1;
  template <class Builder>
  static constexpr void enter(Builder& b) {
    b.scope().trained = false;
    b.scope().adapter = detail::low_rank_term{};
  }
};

/// Layers of which a Residual or a layer of branches may be cut, too: between its parts, one of
/// which may itself be such a layer; and an attention, before and behind its scores. So a block
/// that takes too long for a stage is divided where time is gained. What is joined crosses the cut
/// beside the current value.
///
/// law: with values of 32 or 64 bits the same bits as without it, however the model is cut. With
///      values of 16 bits a product is rounded before an activation or a sum behind it, for every
///      cut, as if the layers were written without a Residual around them
template <class... L>
struct CutInside {
  using parts = detail::layers<L...>;
  static constexpr bool decorates = true;
  static constexpr int times = 1;
  template <class Builder>
  static constexpr void enter(Builder& b) {
    b.scope().cut_inside = true;
  }
};

/// A setting of a Group: Numerator/Denominator times the optimizer's learning rate.
template <auto Numerator, int Denominator = 1>
struct LearningRate : detail::ratio<Numerator, Denominator> {
  using quotient = detail::ratio<Numerator, Denominator>;
  static constexpr auto option = detail::option_kind::learning_rate;
  static constexpr detail::option_number number = quotient::in(quotient::at_least_zero());
  /// Multiplies the rates of the parameters in scope: nested groups multiply.
  static constexpr void set(detail::parameter_scope& s) {
    s.rate_scale *= quotient::template value<double>();
  }
};
/// A setting of a Group: Numerator/Denominator times the optimizer's weight decay. Biases and norms
/// never decay.
template <auto Numerator, int Denominator = 1>
struct WeightDecay : detail::ratio<Numerator, Denominator> {
  using quotient = detail::ratio<Numerator, Denominator>;
  static constexpr auto option = detail::option_kind::weight_decay;
  static constexpr detail::option_number number = quotient::in(quotient::at_least_zero());
  static constexpr void set(detail::parameter_scope& s) {
    s.decay_scale *= quotient::template value<double>();
  }
};

namespace detail {

/// An item of a Group that is a setting; every other item is a layer.
template <class O>
concept group_option = requires(parameter_scope& s) { O::set(s); };
template <class... Lists>
using joined = decltype((layers<>{} + ... + Lists{}));

}  // namespace detail

/// Layers with settings of their own: `Group<LearningRate<1, 10>, WeightDecay<0>, Linear<64>,
/// Tanh>`. The ratios of nested groups multiply. An `Init` is a setting as well; the innermost one
/// holds.
template <class... Items>
struct Group {
  using parts = detail::joined<
      std::conditional_t<detail::group_option<Items>, detail::layers<>, detail::layers<Items>>...>;
  using options = detail::joined<
      std::conditional_t<detail::group_option<Items>, detail::layers<Items>, detail::layers<>>...>;
  static constexpr auto takes =
      detail::option_kinds(detail::option_kind::learning_rate, detail::option_kind::weight_decay,
                           detail::option_kind::initial);
  static constexpr bool decorates = true;
  static constexpr int times = 1;
  template <class Builder>
  static constexpr void enter(Builder& b) {
    (apply<Items>(b.scope()), ...);
  }

 private:
  template <class Item>
  static constexpr void apply(detail::parameter_scope& s) {
    if constexpr (detail::group_option<Item>) Item::set(s);
  }
};

}  // namespace pp
