// SPDX-License-Identifier: BSL-1.0
//
// Initial values of parameters other than a layer's default: the formulas of PyTorch's
// torch.nn.init, and GPT-2's. A recipe is a function of the numbers of inputs and outputs of a
// weight; the values drawn depend on the seed only.
#pragma once

#include <concepts>

#include <pipe/base/constant.hpp>
#include <pipe/base/constexpr_sqrt.hpp>
#include <pipe/graph/builder.hpp>
#include <pipe/nn/ratio.hpp>

namespace pp {

namespace detail {

/// A recipe: R::of(inputs, outputs) is an initializer.
template <class R>
concept initial_recipe = requires {
  { R::of(1, 1) } -> std::same_as<initializer>;
};

/// R::of for given widths, as a call that is perhaps not constant. constant_recipe: whether it is a
/// constant for some widths; also true for types that are not recipes.
template <class R, int Inputs, int Outputs>
struct recipe_call {
  static constexpr auto call() { return R::of(Inputs, Outputs); }
};
template <class R>
concept constant_recipe = !initial_recipe<R> || is_constant<recipe_call<R, 64, 64>> ||
                          is_constant<recipe_call<R, 2, 3>> || is_constant<recipe_call<R, 1, 1>>;

}  // namespace detail

/// Uniform in +-sqrt(6 / (inputs + outputs)). Source: Glorot and Bengio, 2010; xavier_uniform_.
struct XavierUniform {
  static constexpr detail::initializer of(int inputs, int outputs) {
    return {distribution::uniform, detail::constexpr_sqrt(6.0f / (float(inputs) + float(outputs)))};
  }
};
/// Normal with deviation sqrt(2 / (inputs + outputs)). Source: the same; xavier_normal_.
struct XavierNormal {
  static constexpr detail::initializer of(int inputs, int outputs) {
    return {distribution::normal, detail::constexpr_sqrt(2.0f / (float(inputs) + float(outputs)))};
  }
};
/// Short for XavierUniform.
using Xavier = XavierUniform;

/// Uniform in +-sqrt(6 / inputs): keeps the variance of activations through a ReLU. Source: He et
/// al., 2015; kaiming_uniform_ with nonlinearity="relu", mode="fan_in".
struct KaimingUniform {
  static constexpr detail::initializer of(int inputs, int) {
    return {distribution::uniform, detail::constexpr_sqrt(6.0f / float(inputs))};
  }
};
/// Normal with deviation sqrt(2 / inputs). Source: the same; kaiming_normal_.
struct KaimingNormal {
  static constexpr detail::initializer of(int inputs, int) {
    return {distribution::normal, detail::constexpr_sqrt(2.0f / float(inputs))};
  }
};
/// Normal with deviation sqrt(2 / outputs): keeps the variance of gradients. Source: the same;
/// kaiming_normal_ with mode="fan_out", with which torchvision's ResNets begin.
struct KaimingNormalFanOut {
  static constexpr detail::initializer of(int, int outputs) {
    return {distribution::normal, detail::constexpr_sqrt(2.0f / float(outputs))};
  }
};
/// Short for KaimingUniform.
using Kaiming = KaimingUniform;

/// Normal with mean 0 and deviation Numerator/Denominator >= 0.
template <auto Numerator, int Denominator = 1>
struct Normal : detail::ratio<Numerator, Denominator> {
  using quotient = detail::ratio<Numerator, Denominator>;
  static constexpr detail::option_number number = quotient::in(quotient::at_least_zero());
  static constexpr detail::initializer of(int, int) {
    return {distribution::normal, float(quotient::template value<double>())};
  }
};
/// Normal with deviation Numerator/Denominator / sqrt(2 * Depth), for the projections that add to
/// the residual stream of a model of Depth blocks, two per block: the variance of their sum is
/// independent of the depth. Source: Radford et al., GPT-2, 2019, section 2.3.
template <int Numerator, int Denominator, int Depth>
struct ScaledNormal : detail::ratio<Numerator, Denominator> {
  using quotient = detail::ratio<Numerator, Denominator>;
  static constexpr detail::option_number number =
      quotient::in(quotient::at_least_zero() && Depth > 0);
  static constexpr detail::initializer of(int, int) {
    return {distribution::normal, float(quotient::template value<double>()) /
                                      detail::constexpr_sqrt(2.0f * float(Depth))};
  }
};
/// The values of another recipe divided by sqrt(Depth), for the layers inside each of Depth blocks:
/// so the variance of what all blocks add together is that of one.
///
/// source: Huang et al., GPipe, 2019, section 5, after Zhang, Dauphin, Ma, Fixup, 2019
template <class Recipe, int Depth>
struct DepthScaled {
  static constexpr detail::option_number number = Depth > 0
                                                      ? detail::number_of<Recipe>()
                                                      : detail::option_number{false, Depth, 1};
  static constexpr detail::initializer of(int inputs, int outputs)
    requires detail::initial_recipe<Recipe>
  {
    detail::initializer drawn = Recipe::of(inputs, outputs);
    if (Depth > 0) drawn.scale /= detail::constexpr_sqrt(float(Depth));
    return drawn;
  }
};
/// Zeros.
struct Zeros {
  static constexpr detail::initializer of(int, int) { return {distribution::constant, 0}; }
};

namespace detail {

/// The rules of one recipe, for weights, or of two, for weights and biases.
template <class Weights, class... Biases>
constexpr initial_rules rules_of() {
  initial_rules r{{&Weights::of, true}, {}};
  ((r.biases = initial_rule{&Biases::of, true}), ...);
  return r;
}
/// The first number of the recipes that is out of range, or one in range.
template <class... Recipes>
constexpr option_number first_out_of_range() {
  option_number found;
  ((found = found.in_range ? number_of<Recipes>() : found), ...);
  return found;
}

}  // namespace detail

/// An option of Linear, convolutions, Attention, Embedding and EmbeddingBag, and of a Group for all
/// of these inside it: the recipe of the weights. Biases keep the layer's default, as under
/// torch.nn.init, unless there is a second recipe: `Init<Xavier, Zeros>`.
template <class... Recipes>
struct Init {
  static constexpr bool complete = (sizeof...(Recipes) == 1 || sizeof...(Recipes) == 2) &&
                                   (detail::initial_recipe<Recipes> && ...);
  static constexpr auto option =
      complete ? detail::option_kind::initial : detail::option_kind::none;
  static constexpr detail::option_number number = detail::first_out_of_range<Recipes...>();
  static constexpr bool is_constexpr = (detail::constant_recipe<Recipes> && ...);
  static constexpr detail::initial_rules rules = [] {
    if constexpr (complete)
      return detail::rules_of<Recipes...>();
    else
      return detail::initial_rules{};
  }();
  static constexpr void set(detail::parameter_scope& s) { s.initial = rules; }
};
/// An option of Attention: as Init, for its output projection only. It takes precedence over Init.
template <class... Recipes>
struct OutputInit {
  static constexpr auto option =
      Init<Recipes...>::complete ? detail::option_kind::output_initial : detail::option_kind::none;
  static constexpr detail::option_number number = Init<Recipes...>::number;
  static constexpr bool is_constexpr = Init<Recipes...>::is_constexpr;
  static constexpr detail::initial_rules output_rules = Init<Recipes...>::rules;
};

namespace detail {

/// An Init, and an OutputInit, among the options of a layer.
template <class O>
concept init_option = requires { O::rules; };
template <class O>
concept output_init_option = requires { O::output_rules; };

/// The rules after option O: its own if it has some, else those so far.
template <class O>
constexpr initial_rules after_option(initial_rules so_far) {
  if constexpr (init_option<O>) return O::rules;
  return so_far;
}
template <class O>
constexpr initial_rules after_output_option(initial_rules so_far) {
  if constexpr (output_init_option<O>) return O::output_rules;
  return so_far;
}
/// The rules of the Init (initial_output_of: of the OutputInit) among the options, or `without`.
template <class... Options>
constexpr initial_rules initial_of(initial_rules without) {
  ((without = after_option<Options>(without)), ...);
  return without;
}
template <class... Options>
constexpr initial_rules initial_output_of(initial_rules without) {
  ((without = after_output_option<Options>(without)), ...);
  return without;
}

}  // namespace detail

}  // namespace pp
