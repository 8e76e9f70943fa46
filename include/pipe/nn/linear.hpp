// SPDX-License-Identifier: BSL-1.0
//
// The affine layer.
#pragma once

#include <type_traits>

#include <pipe/graph/builder.hpp>
#include <pipe/nn/initial.hpp>

namespace pp {

/// An option: no bias in a Linear or an Attention.
struct NoBias {
  static constexpr auto option = detail::option_kind::bias;
};

namespace detail {

/// The names of the parameters of an affine map in weight files, and those with a low-rank term
/// beside it, as PEFT has them.
struct affine_names {
  char const* weight = "weight";
  char const* bias = "bias";
  char const* base_weight = "base_layer.weight";
  char const* base_bias = "base_layer.bias";
  char const* lora_a = "lora_A.weight";
  char const* lora_b = "lora_B.weight";
};

/// Adds y = x w (+ b), and the low-rank term of a LoRA around it. The parameters are initialised by
/// `start` or else by PyTorch's default: uniform in +-1/sqrt(inputs).
template <class Builder>
constexpr handle affine(Builder& b, handle x, int outputs, bool has_bias, initial_rules start,
                        affine_names const& names = affine_names{}) {
  int const inputs = x.form.columns();
  initializer const usual{distribution::uniform, 1.0f / constexpr_sqrt(float(inputs))};
  auto const initial = [&](initial_rule const& rule) { return rule.of(inputs, outputs, usual); };
  bool const adapted = b.scope().adapter.rank > 0;
  handle y = b.matmul(x,
                      b.parameter(inputs, outputs, initial(start.weights), true,
                                  {adapted ? names.base_weight : names.weight, true}),
                      outputs);
  if (has_bias)
    y = b.bias(y, b.parameter(1, outputs, initial(start.biases), false,
                              {adapted ? names.base_bias : names.bias}));
  return adapted ? b.add(b.low_rank(x, outputs, usual, names.lora_a, names.lora_b), y) : y;
}

}  // namespace detail

/// y = x w + b along the last extent; the input width is inferred.
///
/// shape:  (..., K) -> (..., Outputs); w[K, Outputs], b[Outputs]
/// options: NoBias, Init<...>
/// cost:    forward 2 K Outputs FLOPs per row; backward twice that, for dx = dy w' and dw = x' dy
template <int Outputs, class... Options>
struct Linear {
  using options = detail::layers<Options...>;
  static constexpr auto takes =
      detail::option_kinds(detail::option_kind::bias, detail::option_kind::initial);
  static constexpr bool has_bias = !(std::is_same_v<Options, NoBias> || ...);

  template <class Builder>
  static constexpr void describe(Builder& b) {
    if (b.needs_numbers() && b.needs_positive(Outputs))
      b.set(detail::affine(b, b.current(), Outputs, has_bias,
                           detail::initial_of<Options...>(b.scope().initial)));
  }
};

}  // namespace pp
