// SPDX-License-Identifier: BSL-1.0
//
// The affine layer.
#pragma once

#include <concepts>

#include <pipe/graph/builder.hpp>

namespace pp {

/// Leaves the bias out of a Linear or an Attention.
struct NoBias {};

/// law: result * result <= x < (result + 1)^2 within rounding; 0 for x <= 0.
constexpr float constexpr_sqrt(float x) {
  if (!(x > 0)) return 0;
  double r = x > 1 ? x : 1;
  for (int i = 0; i < 64; ++i) r = 0.5 * (r + x / r);
  return float(r);
}

/// What the two parameters of an affine map are called in weight files.
struct affine_names {
  char const* weight = "weight";
  char const* bias = "bias";
};

/// Adds y = x w (+ b) with PyTorch's default initialisation: both uniform in +-1/sqrt(inputs).
template <class Builder>
constexpr handle affine(Builder& b, handle x, int outputs, bool has_bias, affine_names const& names = affine_names{}) {
  int const inputs = x.form.columns();
  initializer const initial{distribution::uniform, 1.0f / constexpr_sqrt(float(inputs))};
  handle y = b.matmul(x, b.parameter(inputs, outputs, initial, true, {names.weight, true}), outputs);
  if (has_bias) y = b.bias(y, b.parameter(1, outputs, initial, false, {names.bias}));
  return y;
}

/// y = x w + b along the last extent; the input width is inferred.
///
/// shape:  (..., K) -> (..., Outputs); w[K, Outputs], b[Outputs]
template <int Outputs, class... Options>
  requires((std::same_as<Options, NoBias> && ...))
struct Linear {
  template <class Builder>
  static constexpr void describe(Builder& b) {
    if (b.needs_numbers() && b.needs_positive(Outputs)) b.set(affine(b, b.current(), Outputs, sizeof...(Options) == 0));
  }
};

}  // namespace pp
