// SPDX-License-Identifier: BSL-1.0
//
// Normalisation of each row, with a learned scale (and shift).
#pragma once

#include <pipe/graph/builder.hpp>
#include <pipe/graph/layer_option.hpp>
#include <pipe/nn/with.hpp>

namespace pp {

namespace detail {

/// The settings of norms that have more than an epsilon.
struct batch_norm_settings {
  double epsilon = 1e-5, momentum = 0.1;
  bool is_biased = false, is_affine = true;
  int samples = 0;
};

}  // namespace detail

/// The number that a norm adds to the variance: Numerator / Denominator > 0, in fp64
/// for double parameters and else in fp32. `Epsilon<1, 1'000'000'000'000>` is BERT's.
template <long long Numerator, long long Denominator = 1>
struct Epsilon {
  static constexpr auto option = detail::option_kind::epsilon;
  static constexpr detail::option_number number{Numerator > 0 && Denominator > 0, int(Numerator),
                                                int(Denominator)};
  static constexpr void join(double& epsilon) { epsilon = double(Numerator) / double(Denominator); }
  static constexpr void join(detail::batch_norm_settings& s) { join(s.epsilon); }
};

/// An option of norms with a scale and a shift: neither of them.
struct NoAffine {
  static constexpr auto option = detail::option_kind::affine;
  static constexpr void join(detail::batch_norm_settings& s) { s.is_affine = false; }
};
/// An option of InstanceNorm: a scale and a shift for each channel.
struct WithAffine {
  static constexpr auto option = detail::option_kind::affine;
  static constexpr void join(detail::batch_norm_settings& s) { s.is_affine = true; }
};

namespace detail {

/// LayerNorm with options.
template <class... Options>
struct layer_norm_with {
  using options = layers<Options...>;
  static constexpr auto takes = option_kinds(option_kind::epsilon);
  template <class Builder>
  static constexpr void describe(Builder& b) {
    if (!b.needs_numbers() || !b.needs_two_channels(b.current())) return;
    double epsilon = 1e-5;
    (Options::join(epsilon), ...);
    int const width = b.current().form.columns();
    operand const gamma = b.parameter(1, width, {distribution::constant, 1}, false, {"weight"});
    operand const beta = b.parameter(1, width, {distribution::constant, 0}, false, {"bias"});
    b.set(b.norm(b.current(), gamma, beta, true, epsilon));
  }
};

}  // namespace detail

/// y = (x - mean) / sqrt(variance + epsilon) * gamma + beta over the last extent, as PyTorch's
/// LayerNorm.
///
/// shape:  (..., C) -> (..., C), C >= 2; gamma[C], initially 1, beta[C], initially 0
/// options: Epsilon (default 1e-5)
/// law:     statistics and sums are in fp32, or in double for double parameters, whatever the type
///          of values
struct LayerNorm : detail::layer_norm_with<> {
  template <class... Options>
  using with_options = detail::layer_norm_with<Options...>;
};

namespace detail {

/// RMSNorm with options.
template <class... Options>
struct rms_norm_with {
  using options = layers<Options...>;
  static constexpr auto takes = option_kinds(option_kind::epsilon);
  template <class Builder>
  static constexpr void describe(Builder& b) {
    if (!b.needs_numbers() || !b.needs_two_channels(b.current())) return;
    double epsilon = 0x1p-23;
    (Options::join(epsilon), ...);
    operand const gamma =
        b.parameter(1, b.current().form.columns(), {distribution::constant, 1}, false, {"weight"});
    b.set(b.norm(b.current(), gamma, operand{}, false, epsilon));
  }
};

}  // namespace detail

/// y = x / sqrt(mean(x^2) + epsilon) * gamma, as PyTorch's RMSNorm.
///
/// shape:  (..., C) -> (..., C), C >= 2; gamma[C], initially 1
/// options: Epsilon (default 2^-23, the distance from 1 to the next float)
/// source:  Zhang, Sennrich, Root Mean Square Layer Normalization, 2019
struct RMSNorm : detail::rms_norm_with<> {
  template <class... Options>
  using with_options = detail::rms_norm_with<Options...>;
};

}  // namespace pp
