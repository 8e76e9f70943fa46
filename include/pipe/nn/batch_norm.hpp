// SPDX-License-Identifier: BSL-1.0
//
// Batch norm, as GPipe has it: in training each channel is normalised by the statistics of its
// micro-batch, while the running statistics, which evaluation uses, follow those of the whole
// mini-batch.
#pragma once

#include <pipe/graph/builder.hpp>
#include <pipe/graph/layer_option.hpp>
#include <pipe/nn/norm.hpp>

namespace pp {

/// An option of BatchNorm: running += N / D * (that of the mini-batch - running), 0 < N / D <= 1.
/// The default is PyTorch's 1 / 10; TensorFlow's decay of 0.99 is `Momentum<1, 100>`.
template <long long Numerator, long long Denominator = 1>
struct Momentum {
  static constexpr auto option = detail::option_kind::momentum;
  static constexpr detail::option_number number{Numerator > 0 && Numerator <= Denominator,
                                                int(Numerator), int(Denominator)};
  static constexpr void join(detail::batch_norm_settings& s) {
    s.momentum = double(Numerator) / double(Denominator);
  }
};

/// An option of BatchNorm: the running variance is the mean of squares, as torchgpipe's, not that
/// times n / (n - 1), as PyTorch's.
struct BiasedVariance {
  static constexpr auto option = detail::option_kind::variance;
  static constexpr void join(detail::batch_norm_settings& s) { s.is_biased = true; }
};

/// An option of BatchNorm: in training the statistics are those of Samples consecutive samples of
/// the mini-batch, from its first one on, as in ghost batch normalization, whatever the size of
/// micro-batches is. 0 is the default, the micro-batch.
///
/// law:    y, the running statistics and the gradients of the layer have the same bits with every
///         MicroBatchSize
/// error:  sync_over_must_divide_the_micro_batch
/// source: Hoffer et al., Train longer, generalize better, 2017, algorithm 1
template <int Samples>
struct SyncOver {
  static constexpr auto option = detail::option_kind::samples;
  static constexpr detail::option_number number{Samples >= 0, Samples};
  static constexpr void join(detail::batch_norm_settings& s) { s.samples = Samples; }
};

namespace detail {

/// BatchNorm with options.
template <class... Options>
struct batch_norm_with {
  using options = layers<Options...>;
  static constexpr auto takes =
      option_kinds(option_kind::epsilon, option_kind::momentum, option_kind::variance,
                   option_kind::affine, option_kind::samples);
  template <class Builder>
  static constexpr void describe(Builder& b) {
    using statistic = commit_rule::statistic;
    if (!b.needs_numbers()) return;
    batch_norm_settings with;
    (Options::join(with), ...);
    sample_shape const form = b.current().form, channels(form.columns());
    operand gamma{}, beta{};
    if (with.is_affine) {
      gamma = b.parameter(1, form.columns(), {distribution::constant, 1}, false, {"weight"});
      beta = b.parameter(1, form.columns(), {distribution::constant, 0}, false, {"bias"});
    }
    commit_rule rule{with.momentum, form.rows(), statistic::mean_of_differences};
    operand const mean = b.buffer(channels, {distribution::constant, 0}, rule, {"running_mean"});
    rule.of = with.is_biased ? statistic::biased_variance : statistic::variance;
    operand const variance = b.buffer(channels, {distribution::constant, 1}, rule, {"running_var"});
    if (!b.ok()) return;
    bool const is_constant = !b.scope().trained;
    b.set(b.batch_norm(b.current(), gamma, beta, mean, variance,
                       {form.rows(), with.epsilon, is_constant, is_constant ? 0 : with.samples}));
  }
};

}  // namespace detail

/// y = (x - mean) / sqrt(variance + epsilon) * gamma + beta for each channel, with mean and biased
/// variance over all samples and positions of a micro-batch. Outside of training, and in a Frozen
/// layer, they are the running ones: buffers, which each step moves towards the mean and the
/// unbiased variance of the mini-batch as a whole.
///
/// shape:   (..., C) -> (..., C); gamma[C], initially 1, beta[C], initially 0; running_mean[C],
///          initially 0, running_var[C], initially 1
/// options: Epsilon (default 1e-5), Momentum (default 1 / 10), BiasedVariance, NoAffine, SyncOver
/// law:     y depends on the size of micro-batches, unless SyncOver is given, and on nothing else
///          of a plan. A step writes the running statistics once, whatever its schedule, cut and
///          recomputation; samples that only fill up a micro-batch are in no statistic
/// error:   micro_batch_norms_one_number, and data_error in training, if a micro-batch, or a group
///          of SyncOver, has one number in a channel
/// source:  Ioffe, Szegedy, Batch Normalization, 2015; Huang et al., GPipe, 2019, section 3.3
struct BatchNorm : detail::batch_norm_with<> {
  template <class... Options>
  using with_options = detail::batch_norm_with<Options...>;
};

}  // namespace pp
