// SPDX-License-Identifier: BSL-1.0
//
// The loss of a model: the last item of its list.
#pragma once

#include <concepts>

#include <pipe/base/libm.hpp>
#include <pipe/base/math.hpp>
#include <pipe/graph/builder.hpp>
#include <pipe/nn/loss_option.hpp>
#include <pipe/nn/ratio.hpp>
#include <pipe/nn/with.hpp>

namespace pp {

namespace detail {

/// A layer that ends a model. `labels_are_ids`: one class number per row; otherwise numbers of the
/// output's shape. (A Model has that member too, but also a graph.)
template <class L>
concept loss_layer = requires {
  { L::labels_are_ids } -> std::convertible_to<bool>;
} && !requires { L::graph; } && !requires { L::is_further_loss; };

}  // namespace detail

/// Targets of 1 - e at the label plus e / V everywhere, e = Numerator / Denominator in [0, 1]:
/// PyTorch's label_smoothing (Szegedy et al., 2016).
template <auto Numerator, int Denominator = 1>
struct LabelSmoothing : detail::ratio<Numerator, Denominator> {
  using quotient = detail::ratio<Numerator, Denominator>;
  static constexpr auto option = detail::option_kind::smoothing;
  static constexpr detail::option_number number = quotient::in(quotient::at_most_one());
  static constexpr void join(detail::loss_operands& in) {
    in.cross_entropy.smoothing = quotient::template value<double>();
  }
};

/// Adds z * log(sum exp(x))^2 per row, z = Numerator / Denominator >= 0, which keeps the logits
/// small (PaLM, 2022, section 5).
template <auto Numerator, int Denominator = 1>
struct ZLoss : detail::ratio<Numerator, Denominator> {
  using quotient = detail::ratio<Numerator, Denominator>;
  static constexpr auto option = detail::option_kind::z;
  static constexpr detail::option_number number = quotient::in(quotient::at_least_zero());
  static constexpr void join(detail::loss_operands& in) {
    in.cross_entropy.z_loss = quotient::template value<double>();
  }
};

namespace detail {

/// CrossEntropy with options.
template <class... Options>
struct cross_entropy_with : loss_with<Options...> {
  using with = loss_with<Options...>;
  static constexpr auto takes =
      option_kinds(option_kind::smoothing, option_kind::z, option_kind::class_weights,
                   option_kind::weights, option_kind::reduction);
  static constexpr bool labels_are_ids = true;
  template <class Builder>
  static constexpr void describe(Builder& b) {
    if (!b.needs_numbers()) return;
    if constexpr (with::weighs_classes)
      if (int const classes = b.current().form.columns(); with::class_weights::count != classes)
        return b.report(wrong::class_weights_must_be_one_for_each_class, sample_shape(classes),
                        sample_shape(with::class_weights::count));
    loss_operands in = with::further_inputs(b, sample_shape{});
    (add<Options>(in), ...);
    if (with::weighs_classes) in.cross_entropy.term = row_term::weighted_by_class;
    b.loss(op_kind::cross_entropy, b.current(), in);
  }

 private:
  template <class O>
  static constexpr void add(loss_operands& in) {
    if constexpr (requires { O::join(in); }) O::join(in);
    (void)in;
  }
};

}  // namespace detail

/// -log softmax(x)[label], mean over the rows of the mini-batch whose label is not -1. Softmax,
/// loss and gradient are one kernel.
///
/// shape:  logits (..., V), labels (...) in [-1, V)
/// options: LabelSmoothing, ZLoss, ClassWeights, Weights, Reduction
struct CrossEntropy : detail::cross_entropy_with<> {
  template <class... Options>
  using with_options = detail::cross_entropy_with<Options...>;
};

namespace detail {

/// MSE with options.
template <class... Options>
struct squared_error_with : loss_with<Options...> {
  static constexpr auto takes = option_kinds(option_kind::weights, option_kind::reduction);
  static constexpr bool labels_are_ids = false;
  template <class Builder>
  static constexpr void describe(Builder& b) {
    if (b.needs_numbers())
      b.loss(op_kind::squared_error, b.current(),
             loss_with<Options...>::further_inputs(b, sample_shape{}));
  }
};

}  // namespace detail

/// (x - target)^2, mean over all elements of the mini-batch.
///
/// shape:  (...), targets: numbers of the same shape
/// options: Weights, Reduction
struct MSE : detail::squared_error_with<> {
  template <class... Options>
  using with_options = detail::squared_error_with<Options...>;
};

/// A loss by a formula of each element. F derives from it and has static functions value(x, target)
/// and slope(x, target), the derivative of value with respect to x, both marked PIPE_HD
/// PIPE_INLINE; further arguments are the Targets, in order. The loss is the mean over all elements
/// of the mini-batch. docs/howto/own_losses.md shows how to write and check one. (An F that does
/// not derive from it is written `ElementLoss<F>` in the model.)
///
/// shape:  (...), targets: numbers of the same shape
/// options: Target, Weights, Reduction
template <class F, class... Options>
struct ElementLoss : detail::loss_with<Options...> {
  using formula = F;
  using with = detail::loss_with<Options...>;
  static constexpr auto takes = detail::option_kinds(
      detail::option_kind::target, detail::option_kind::weights, detail::option_kind::reduction);
  static constexpr bool labels_are_ids = false;
  template <class Builder>
  static constexpr void describe(Builder& b) {
    detail::describe_formula<F, 2>(b, op_kind::element_loss, with{}, b.current().form);
  }
};

/// A loss by a formula of each row's log-probability l = log softmax(x)[label]. F derives from it
/// and has static functions value(l) and slope(l), the derivative of value with respect to l, both
/// marked PIPE_HD PIPE_INLINE; further arguments are the Targets, in order. The loss is the mean
/// over the rows of the mini-batch whose label is not -1; value(l) = -l is CrossEntropy. Policy
/// gradients and focal losses have this form.
///
/// shape:  logits (..., V), labels (...) in [-1, V)
/// options: Target, Weights, Reduction
template <class F, class... Options>
struct LabelLoss : detail::loss_with<Options...> {
  using formula = F;
  using with = detail::loss_with<Options...>;
  static constexpr auto takes = detail::option_kinds(
      detail::option_kind::target, detail::option_kind::weights, detail::option_kind::reduction);
  static constexpr bool labels_are_ids = true;
  template <class Builder>
  static constexpr void describe(Builder& b) {
    detail::describe_formula<F, 1>(b, op_kind::cross_entropy, with{},
                                   sample_shape(b.current().form.rows()));
  }
};

namespace detail {

/// BCE with options.
template <class... Options>
struct binary_cross_entropy_with : ElementLoss<binary_cross_entropy_with<Options...>, Options...> {
  static constexpr bool reads_logits = true;
  static constexpr auto takes =
      option_kinds(option_kind::positive_weight, option_kind::weights, option_kind::reduction);
  using positive = option_of<option_kind::positive_weight, Options...>;
  static constexpr int least_target = 0, most_target = 1;

  /// log(1 + e^x) - t x, without PosWeight, as (x + |x|) / 2 - x t + log(1 + e^-|x|), whose
  /// exponential cannot overflow.
  template <math::product P = math::product::exact, class T>
  PIPE_HD static PIPE_INLINE T value(T x, T target) {
    T const size = libm::fabs(x), tail = math::log1p<P>(math::exp<P>(-size));
    if constexpr (std::is_void_v<positive>)
      return math::multiply_add<P>(T(0.5), x + size, -(x * target)) + tail;
    else
      return math::multiply_add<P>(positives<P>(target),
                                   math::multiply_add<P>(T(0.5), size - x, tail),
                                   math::multiply_add<P>(-x, target, x));
  }
  /// sigmoid(x) - t; with PosWeight w: (1 - t) - (1 + (w - 1) t) sigmoid(-x).
  template <math::product P = math::product::exact, class T>
  PIPE_HD static PIPE_INLINE T slope(T x, T target) {
    if constexpr (std::is_void_v<positive>)
      return math::sigmoid<P>(x) - target;
    else
      return math::multiply_add<P>(-positives<P>(target), math::sigmoid<P>(-x), T(1) - target);
  }

 private:
  /// The factor of -log(sigmoid(x)) beside x (1 - t): 1 + (w - 1) t.
  template <math::product P = math::product::exact, class T>
  PIPE_HD static PIPE_INLINE T positives(T target) {
    return math::multiply_add<P>(positive::template value<T>() - T(1), target, T(1));
  }
};

}  // namespace detail

/// -w t log(sigmoid(x)) - (1 - t) log(1 - sigmoid(x)) for a target t in [0, 1]; w is PosWeight, or
/// 1: PyTorch's BCEWithLogitsLoss.
///
/// shape:  logits (...), targets: numbers of the same shape
/// options: PosWeight, Weights, Reduction
struct BCE : detail::binary_cross_entropy_with<> {
  template <class... Options>
  using with_options = detail::binary_cross_entropy_with<Options...>;
};

/// d^2 / 2 for |d| <= delta, else delta (|d| - delta / 2), where d = x - target and delta =
/// Numerator / Denominator > 0: PyTorch's HuberLoss.
///
/// options: Weights, Reduction
template <auto Numerator = 1, int Denominator = 1, class... Options>
struct Huber : ElementLoss<Huber<Numerator, Denominator, Options...>, Options...> {
  static constexpr auto takes =
      detail::option_kinds(detail::option_kind::weights, detail::option_kind::reduction);
  using delta = detail::ratio<Numerator, Denominator>;
  template <class Builder>
  static constexpr void describe(Builder& b) {
    if (b.needs_ratio(delta::in(delta::positive())))
      ElementLoss<Huber<Numerator, Denominator, Options...>, Options...>::describe(b);
  }
  /// Both branches as one: s (d - s / 2), where s is d limited to [-delta, delta].
  template <math::product P = math::product::exact, class T>
  PIPE_HD static PIPE_INLINE T value(T x, T target) {
    T const d = x - target, s = slope<P>(x, target);
    return s * math::multiply_add<P>(T(-0.5), s, d);
  }
  /// d limited to [-delta, delta].
  template <math::product P = math::product::exact, class T>
  PIPE_HD static PIPE_INLINE T slope(T x, T target) {
    T const d = x - target, size = libm::fabs(d), limit = delta::template value<T>();
    return libm::copysign(size > limit ? limit : size, d);  // NaN stays NaN
  }
};

}  // namespace pp
