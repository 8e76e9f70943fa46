// SPDX-License-Identifier: BSL-1.0
//
// Losses of PyTorch's by a formula of an element or of a row: absolute error, focal loss, triplets
// and distributions as labels.
#pragma once

#include <pipe/base/custom.hpp>
#include <pipe/base/libm.hpp>
#include <pipe/base/math.hpp>
#include <pipe/graph/builder.hpp>
#include <pipe/nn/loss.hpp>
#include <pipe/nn/loss_option.hpp>
#include <pipe/nn/ratio.hpp>
#include <pipe/nn/row_loss.hpp>

namespace pp {

namespace detail {

/// What losses without options of their own take.
inline constexpr auto common_loss_options =
    option_kinds(option_kind::weights, option_kind::reduction);

/// L1Loss with options.
template <class... Options>
struct absolute_error_with : ElementLoss<absolute_error_with<Options...>, Options...> {
  static constexpr auto takes = common_loss_options;
  template <class T>
  PIPE_HD static PIPE_INLINE T value(T x, T target) {
    return libm::fabs(x - target);
  }
  /// The sign of x - target, and 0 at the target.
  template <class T>
  PIPE_HD static PIPE_INLINE T slope(T x, T target) {
    return math::with_sign(T(1), x - target);
  }
};

}  // namespace detail

/// |x - target|, mean over all elements of the mini-batch: PyTorch's L1Loss.
///
/// shape:  (...), targets: numbers of the same shape
/// options: Weights, Reduction
struct L1Loss : detail::absolute_error_with<> {
  template <class... Options>
  using with_options = detail::absolute_error_with<Options...>;
};

/// a (1 - p)^Gamma times BCE for a target of 1, where p = sigmoid(x) and a = Numerator /
/// Denominator, and the mirror image (1 - a) p^Gamma times BCE for 0; what is between by p t + (1 -
/// p) (1 - t): torchvision's sigmoid_focal_loss, mean over all elements. Source: Lin et al., Focal
/// Loss for Dense Object Detection, 2017. (Of classes by a softmax: docs/howto/own_losses.md.)
///
/// shape:  logits (...), targets: numbers of the same shape in [0, 1]
/// options: Weights, Reduction
template <int Gamma = 2, auto Numerator = 1, int Denominator = 4, class... Options>
struct FocalLoss : ElementLoss<FocalLoss<Gamma, Numerator, Denominator, Options...>, Options...> {
  static constexpr auto takes = detail::common_loss_options;
  static constexpr bool reads_logits = true;
  static constexpr int least_target = 0, most_target = 1;
  using alpha = detail::ratio<Numerator, Denominator>;
  using cross_entropy = detail::binary_cross_entropy_with<>;
  template <class Builder>
  static constexpr void describe(Builder& b) {
    if (Gamma < 0)
      b.report(wrong::size_must_be_positive, sample_shape(Gamma));
    else if (b.needs_ratio(alpha::in(alpha::at_most_one())))
      ElementLoss<FocalLoss, Options...>::describe(b);
  }
  template <math::product P = math::product::exact, class T>
  PIPE_HD static PIPE_INLINE T value(T x, T target) {
    return balance<P>(target) * power<Gamma>(missed<P>(math::sigmoid<P>(x), target)) *
           cross_entropy::value<P>(x, target);
  }
  /// By q = 1 - (p t + (1 - p) (1 - t)), the share that is missed: q^Gamma BCE' + Gamma q^(Gamma -
  /// 1) q' BCE, where q' = p (1 - p) (1 - 2 t).
  template <math::product P = math::product::exact, class T>
  PIPE_HD static PIPE_INLINE T slope(T x, T target) {
    T const p = math::sigmoid<P>(x), q = missed<P>(p, target);
    T all = power<Gamma>(q) * (p - target);
    if constexpr (Gamma > 0) {
      T const moved = p * math::sigmoid<P>(-x) * math::multiply_add<P>(T(-2), target, T(1));
      all = math::multiply_add<P>(T(Gamma) * power<Gamma - 1>(q) * moved,
                                  cross_entropy::value<P>(x, target), all);
    }
    return balance<P>(target) * all;
  }

 private:
  template <math::product P, class T>
  PIPE_HD static PIPE_INLINE T balance(T target) {
    constexpr T a = alpha::template value<T>();
    return math::multiply_add<P>(T(2) * a - T(1), target, T(1) - a);
  }
  template <math::product P, class T>
  PIPE_HD static PIPE_INLINE T missed(T p, T target) {
    return math::multiply_add<P>(math::multiply_add<P>(T(-2), target, T(1)), p, target);
  }
  template <int N, class T>
  PIPE_HD static PIPE_INLINE T power(T q) {
    T all = T(1);
    for (int i = 0; i < N; ++i) all *= q;
    return all;
  }
};

namespace detail {

/// Losses of a distribution as a row's label. Diverges: less the entropy of the label.
template <bool Diverges, class... Options>
struct soft_labels_with : RowLoss<soft_labels_with<Diverges, Options...>, Options...> {
  static constexpr auto takes = common_loss_options;
  static constexpr bool reads_logits = true;
  /// The sum over j of -label_j log softmax(x)_j, and label_j log label_j.
  template <class T>
  PIPE_HD static PIPE_INLINE T value(custom::row<T const> x, custom::row<T const> label) {
    T const most = largest(x);
    T sum = 0, mass = 0, of_label = 0, entropy = 0;
    for (int i = 0; i < x.size; ++i) {
      sum += math::exp(x[i] - most);
      mass += label[i];
      of_label += label[i] * (x[i] - most);
      if (Diverges && label[i] > T(0)) entropy += label[i] * math::log(label[i]);
    }
    return mass * math::log(sum) - of_label + entropy;
  }
  /// softmax(x) times the sum of the label, less the label.
  template <class T>
  PIPE_HD static PIPE_INLINE void slopes(custom::row<T const> x, custom::row<T const> label,
                                         custom::row<T> to) {
    T const most = largest(x);
    T sum = 0, mass = 0;
    for (int i = 0; i < x.size; ++i) {
      sum += to[i] = math::exp(x[i] - most);
      mass += label[i];
    }
    T const share = mass / sum;
    for (int i = 0; i < x.size; ++i) to[i] = to[i] * share - label[i];
  }

 private:
  template <class T>
  PIPE_HD static PIPE_INLINE T largest(custom::row<T const> x) {
    T most = x[0];
    for (T const each : x) most = each > most ? each : most;
    return most;
  }
};

}  // namespace detail

/// The sum over j of -label_j log softmax(x)_j, mean over the rows of the mini-batch: PyTorch's
/// CrossEntropyLoss of probabilities, as a teacher gives them.
///
/// shape:  logits (..., V), labels: numbers of the same shape
/// options: Weights, Reduction
struct SoftCrossEntropy : detail::soft_labels_with<false> {
  template <class... Options>
  using with_options = detail::soft_labels_with<false, Options...>;
};

/// The Kullback-Leibler divergence of softmax(x) from the label, the sum over j of label_j (log
/// label_j - log softmax(x)_j), mean over the rows of the mini-batch: PyTorch's
/// KLDivLoss(reduction="batchmean") of log_softmax(x). A label of 0 adds 0.
///
/// shape:  logits (..., V), labels: numbers >= 0 of the same shape
/// options: Weights, Reduction
struct KLDivLoss : detail::soft_labels_with<true> {
  template <class... Options>
  using with_options = detail::soft_labels_with<true, Options...>;
};

/// max(|a - p| - |a - n| + margin, 0) of a row with an anchor a, a positive p and a negative n in
/// its thirds, |d| = sqrt of the sum of (d_j + 1e-6)^2 and margin = Numerator / Denominator > 0:
/// PyTorch's TripletMarginLoss. There are no labels: batches are made of inputs alone.
///
/// shape:  (..., 3 C)
/// options: Weights, Reduction
/// source: Balntas et al., Learning shallow convolutional feature descriptors with triplet losses,
///         2016
template <auto Numerator = 1, int Denominator = 1, class... Options>
struct TripletMarginLoss
    : RowLoss<TripletMarginLoss<Numerator, Denominator, Options...>, Options...> {
  static constexpr auto takes = detail::common_loss_options;
  static constexpr int labels = 0;
  using margin = detail::ratio<Numerator, Denominator>;
  template <class Builder>
  static constexpr void describe(Builder& b) {
    if (b.ok() && b.current().form.columns() % 3 != 0)
      return b.report(wrong::triplet_needs_three_equal_parts, sample_shape(),
                      sample_shape(b.current().form.columns()));
    if (b.needs_ratio(margin::in(margin::positive())))
      RowLoss<TripletMarginLoss, Options...>::describe(b);
  }
  template <class T>
  PIPE_HD static PIPE_INLINE T value(custom::row<T const> x, custom::row<T const>) {
    int const n = x.size / 3;
    T const all = distance(n, x.values, x.values + n) - distance(n, x.values, x.values + 2 * n) +
                  margin::template value<T>();
    return all > T(0) ? all : T(0);
  }
  template <class T>
  PIPE_HD static PIPE_INLINE void slopes(custom::row<T const> x, custom::row<T const>,
                                         custom::row<T> to) {
    int const n = x.size / 3;
    T const *const a = x.values, *const p = a + n, *const m = p + n;
    T const to_positive = distance(n, a, p), to_negative = distance(n, a, m);
    bool const counts = to_positive - to_negative + margin::template value<T>() > T(0);
    T const by_positive = counts && to_positive > T(0) ? T(1) / to_positive : T(0),
            by_negative = counts && to_negative > T(0) ? T(1) / to_negative : T(0);
    for (int i = 0; i < n; ++i) {
      T const of_positive = (a[i] - p[i] + T(1e-6)) * by_positive,
              of_negative = (a[i] - m[i] + T(1e-6)) * by_negative;
      to[i] = of_positive - of_negative;
      to[n + i] = -of_positive;
      to[2 * n + i] = of_negative;
    }
  }

 private:
  template <class T>
  PIPE_HD static PIPE_INLINE T distance(int n, T const* x, T const* y) {
    T sum = 0;
    for (int i = 0; i < n; ++i) {
      T const d = x[i] - y[i] + T(1e-6);
      sum += d * d;
    }
    return libm::sqrt(sum);
  }
};

}  // namespace pp
