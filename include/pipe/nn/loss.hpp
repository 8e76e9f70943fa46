// SPDX-License-Identifier: BSL-1.0
//
// What a model is trained for: the last item of its list.
#pragma once

#include <concepts>

#include <pipe/base/libm.hpp>
#include <pipe/base/math.hpp>
#include <pipe/graph/builder.hpp>
#include <pipe/nn/ratio.hpp>

namespace pp {

/// A layer that ends a model. `labels_are_ids`: one class number per row, otherwise numbers of the output's shape. (A Model
/// says that, too.)
template <class L>
concept loss_layer = requires {
  { L::labels_are_ids } -> std::convertible_to<bool>;
} && !requires { L::graph; };

/// What the options of a cross entropy come to.
struct cross_entropy_terms {
  float smoothing = 0, z = 0;
};

/// The target is 1 - e at the label plus e / V everywhere, e = Numerator / Denominator in [0, 1]: PyTorch's label_smoothing
/// (Szegedy et al., 2016).
template <int Numerator, int Denominator>
struct LabelSmoothing : ratio<Numerator, Denominator> {
  using quotient = ratio<Numerator, Denominator>;
  static constexpr auto option = option_kind::smoothing;
  static constexpr option_number number = quotient::in(quotient::at_most_one());
  static constexpr void join(cross_entropy_terms& terms) { terms.smoothing = quotient::template value<float>(); }
};

/// Adds z * log(sum exp(x))^2 per row, z = Numerator / Denominator >= 0: keeps logits from drifting (PaLM, 2022, section 5).
template <int Numerator, int Denominator>
struct ZLoss : ratio<Numerator, Denominator> {
  using quotient = ratio<Numerator, Denominator>;
  static constexpr auto option = option_kind::z;
  static constexpr option_number number = quotient::in(quotient::at_least_zero());
  static constexpr void join(cross_entropy_terms& terms) { terms.z = quotient::template value<float>(); }
};

/// -log softmax(x)[label], mean over the rows of the mini-batch whose label is not -1; softmax, loss and gradient are one
/// kernel.
///
/// shape:  logits (..., V), labels (...) in [-1, V)
/// options: LabelSmoothing, ZLoss
template <class... Options>
struct CrossEntropyWith {
  using options = layers<Options...>;
  static constexpr unsigned takes = option_kinds(option_kind::smoothing, option_kind::z);
  static constexpr bool labels_are_ids = true;
  template <class Builder>
  static constexpr void describe(Builder& b) {
    if (!b.needs_numbers()) return;
    cross_entropy_terms terms;
    (Options::join(terms), ...);
    b.loss(op_kind::cross_entropy, b.current(), terms.smoothing, terms.z);
  }
};

/// Without options: the name that models write.
struct CrossEntropy : CrossEntropyWith<> {};

/// (x - target)^2, mean over all elements of the mini-batch.
struct MSE {
  static constexpr bool labels_are_ids = false;
  template <class Builder>
  static constexpr void describe(Builder& b) {
    if (b.needs_numbers()) b.loss(op_kind::squared_error, b.current());
  }
};

/// A loss that is a mean over all elements of the mini-batch, of value(x, target), and its slope by x. Mark both as the
/// functions of a `formula`, PIPE_HD PIPE_INLINE.
template <class F>
concept loss_formula = requires(float x) {
  { F::value(x, x) } -> std::same_as<float>;
  { F::slope(x, x) } -> std::same_as<float>;
};

/// Makes a loss of a formula.
///
/// shape:  (...), targets: numbers of the same shape
template <class F>
struct element_loss {
  static constexpr bool labels_are_ids = false;
  template <class Builder>
  static constexpr void describe(Builder& b) {
    constexpr bool has_value = requires(float x) {
      { F::value(x, x) } -> std::same_as<float>;
    };
    if constexpr (!loss_formula<F>)
      b.complain_of_missing(fault_kind::loss_is_incomplete, has_value ? member::slope : member::value);
    else if (b.needs_numbers())
      b.loss(op_kind::element_loss, b.current());
  }
};

/// -t log(sigmoid(x)) - (1 - t) log(1 - sigmoid(x)) for a target t in [0, 1]: PyTorch's BCEWithLogitsLoss.
struct BCE : element_loss<BCE> {
  static constexpr int least_target = 0, most_target = 1;

  template <class T>
  PIPE_HD static PIPE_INLINE T value(T x, T target) {
    T const size = libm::fabs(x);
    return T(0.5) * (x + size) - x * target + math::log1p(math::exp(-size));
  }
  template <class T>
  PIPE_HD static PIPE_INLINE T slope(T x, T target) {
    return math::sigmoid(x) - target;
  }
};

/// d^2 / 2 for |d| <= delta, else delta (|d| - delta / 2), with d = x - target and delta = Numerator / Denominator > 0:
/// PyTorch's HuberLoss.
template <int Numerator = 1, int Denominator = 1>
struct Huber : element_loss<Huber<Numerator, Denominator>> {
  using delta = ratio<Numerator, Denominator>;
  template <class Builder>
  static constexpr void describe(Builder& b) {
    if (b.needs_ratio(delta::positive(), Numerator, Denominator)) element_loss<Huber>::describe(b);
  }
  template <class T>
  PIPE_HD static PIPE_INLINE T value(T x, T target) {
    T const d = x - target, s = slope(x, target);
    return s * (d - T(0.5) * s);
  }
  template <class T>
  PIPE_HD static PIPE_INLINE T slope(T x, T target) {
    T const d = x - target, size = libm::fabs(d), limit = delta::template value<T>();
    return libm::copysign(size > limit ? limit : size, d);  // NaN stays NaN
  }
};

}  // namespace pp
