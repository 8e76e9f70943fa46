// SPDX-License-Identifier: BSL-1.0
//
// Norms of groups of channels, over all positions of a sample.
#pragma once

#include <pipe/graph/builder.hpp>
#include <pipe/graph/layer_option.hpp>
#include <pipe/nn/norm.hpp>

namespace pp {

namespace detail {

/// Describes a group norm of the current value; faults unless its groups are equal and have two
/// numbers or more.
template <class Builder>
constexpr void describe_group_norm(Builder& b, int groups, batch_norm_settings const& with) {
  handle const x = b.current();
  int const width = x.form.columns();
  if (!b.needs_positive(groups)) return;
  if (width % groups != 0)
    return b.report(wrong::norm_groups_must_divide_the_channels, sample_shape(width));
  if (width == groups && x.form.rows() < 2)
    return b.report(wrong::norm_group_has_one_number, x.form);
  operand gamma{}, beta{};
  if (with.is_affine) {
    gamma = b.parameter(1, width, {distribution::constant, 1}, false, {"weight"});
    beta = b.parameter(1, width, {distribution::constant, 0}, false, {"bias"});
  }
  b.set(b.group_norm(x, gamma, beta, {groups, with.epsilon}));
}

}  // namespace detail

/// y = (x - mean) / sqrt(variance + epsilon) * gamma + beta, with mean and biased variance over the
/// positions of a sample and C / Groups neighbouring channels, as PyTorch's GroupNorm.
///
/// shape:   (..., C) -> (..., C), Groups divides C; gamma[C], initially 1, beta[C], initially 0
/// options: Epsilon (default 1e-5), NoAffine
/// law:     y of a sample does not depend on other samples
/// source:  Wu, He, Group Normalization, 2018
template <int Groups, class... Options>
struct GroupNorm {
  using options = detail::layers<Options...>;
  static constexpr auto takes =
      detail::option_kinds(detail::option_kind::epsilon, detail::option_kind::affine);
  template <class Builder>
  static constexpr void describe(Builder& b) {
    if (!b.needs_numbers()) return;
    detail::batch_norm_settings with;
    (Options::join(with), ...);
    detail::describe_group_norm(b, Groups, with);
  }
};

namespace detail {

/// InstanceNorm with options.
template <class... Options>
struct instance_norm_with {
  using options = layers<Options...>;
  static constexpr auto takes = option_kinds(option_kind::epsilon, option_kind::affine);
  template <class Builder>
  static constexpr void describe(Builder& b) {
    if (!b.needs_numbers()) return;
    batch_norm_settings with{.is_affine = false};
    (Options::join(with), ...);
    describe_group_norm(b, b.current().form.columns(), with);
  }
};

}  // namespace detail

/// The norm of each channel over the positions of a sample: a GroupNorm of C groups, without gamma
/// and beta unless WithAffine, as PyTorch's InstanceNorm2d.
///
/// shape:   (..., C) -> (..., C), with two positions or more
/// options: Epsilon (default 1e-5), WithAffine
/// source:  Ulyanov et al., Instance Normalization, 2016
struct InstanceNorm : detail::instance_norm_with<> {
  template <class... Options>
  using with_options = detail::instance_norm_with<Options...>;
};

}  // namespace pp
