// SPDX-License-Identifier: BSL-1.0
//
// Every loss and its options against their definitions in double: value and gradient of each row,
// on every instruction set; labels that do not count; samples that are not there; the mean of a
// mini-batch.
#include "catch.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <pipe/train/evaluate_all.hpp>

#include "backend/lone_kernel.hpp"
#include "laws/data.hpp"
#include "laws/worse.hpp"

using namespace pp;

namespace {

using host::extent;

/// A loss over rows of 21 numbers, five rows per sample, two samples.
template <class Loss>
struct Ends : Model<Input<5, 3>, Linear<21>, Loss> {};
inline constexpr int rows = 10, width = 21;

template <class T>
struct numbers {
  exact<T> x{rows * width, 3}, target{rows * width, 4}, second{rows * width, 5},
      third{rows * width, 6}, weight{rows, 7};
  numbers() {
    for (int i = 0; i < rows * width; ++i) x[i] *= T(9), target[i] *= T(9);
    for (int r = 0; r < rows; ++r) weight[r] = r == 2 ? T(0) : T(1.5) + weight[r];
    x[0] = T(60), x[1] = T(-60), x[2] = T(0);
  }
};

std::vector<int> const some_labels{0, 20, -1, 7, 7, -1, 3, 0, 19, 11};

/// What a loss comes to, and its gradient, from its definition; `there` counts the rows of samples
/// that are there.
struct expected {
  double loss = 0;
  std::vector<double> gradient = std::vector<double>(rows * width);
};

double log_sum_exp(std::vector<double> const& x) {
  double top = x[0], sum = 0;
  for (double v : x) top = std::max(top, v);
  for (double v : x) sum += std::exp(v - top);
  return top + std::log(sum);
}

template <class T>
expected cross_entropy(numbers<T> const& of, std::vector<int> const& labels, double smoothing,
                       double z, int there) {
  expected e;
  for (int r = 0; r < there; ++r) {
    if (labels[std::size_t(r)] < 0) continue;
    std::vector<double> row(of.x.data() + r * width, of.x.data() + (r + 1) * width);
    double const all = log_sum_exp(row);
    for (int c = 0; c < width; ++c) {
      double const t = (1 - smoothing) * (c == labels[std::size_t(r)]) + smoothing / width;
      double const p = std::exp(row[std::size_t(c)] - all);
      e.loss -= t * (row[std::size_t(c)] - all);
      e.gradient[std::size_t(r * width + c)] = p - t + 2 * z * all * p;
    }
    e.loss += z * all * all;
  }
  return e;
}

template <class T, class Value, class Slope>
expected by_element(numbers<T> const& of, Value value, Slope slope, int there) {
  expected e;
  for (int i = 0; i < there * width; ++i) {
    e.loss += value(double(of.x[i]), double(of.target[i]));
    e.gradient[std::size_t(i)] = slope(double(of.x[i]), double(of.target[i]));
  }
  return e;
}

/// Holds what a kernel made to what is expected, whose gradients are scaled by 0.25; samples that
/// are not there have gradients of 0.
template <class T>
void check_near(double loss, exact<T> const& gradient, expected const& wanted, extent there,
                double close) {
  CHECK(loss == Approx(wanted.loss).epsilon(close));
  double most = 0;
  bool zeros = true;
  for (int i = 0; i < rows * width; ++i)
    most =
        laws::worse(most, std::fabs(double(gradient[i]) - 0.25 * wanted.gradient[std::size_t(i)]));
  CHECK(most < close);
  for (extent i = there * width; i < rows * width; ++i) zeros = zeros && gradient[i] == 0;
  CHECK(zeros);
}

template <class Loss, op_kind Kind, class T, class Label>
void check(numbers<T>& of, Label const* labels, expected const& wanted, extent there) {
  using trained =
      lone::compiled<Ends<Loss>, MicroBatchSize<2>, std::conditional_t<sizeof(T) == 8, FP64, FP32>>;
  double const close = sizeof(T) == 8 ? 1e-7 : 2e-6;  // 0.1 as an option is a float
  on_every_isa([&](auto isa) {
    INFO(isa.name);
    for (bool const in_place : {false, true}) {
      lone::kernel<trained, Kind> k;
      exact<T> x(rows * width), gradient(rows * width, 9);
      for (int i = 0; i < rows * width; ++i) x[i] = of.x[i];
      k.in(0) = x.data();
      k.in(1) = labels;
      T const* const more[]{of.second.data(), of.third.data(), of.second.data(), of.weight.data()};
      for (int i = detail::op::first_target; i < detail::op::max_in; ++i)
        if (k.g.in[i] >= 0) k.in(i) = more[i - detail::op::first_target];
      k.out(0) = in_place ? x.data() : gradient.data();
      k.with.loss_scale = T(0.25);
      k.with.valid_samples = int(there) / 5;
      k.run(isa);
      check_near(double(k.loss()), in_place ? x : gradient, wanted, there, close);
    }
  });
}

template <class T, class Loss>
void check_cross_entropy(double smoothing, double z) {
  numbers<T> of;
  for (extent const there : {extent(rows), extent(5), extent(0)})
    check<Loss, op_kind::cross_entropy>(
        of, some_labels.data(), cross_entropy(of, some_labels, smoothing, z, int(there)), there);
}

template <class T, class Loss, op_kind Kind, class Value, class Slope>
void check_elements(Value value, Slope slope) {
  numbers<T> of;
  for (extent const there : {extent(rows), extent(5)})
    check<Loss, Kind>(of, of.target.data(), by_element(of, value, slope, int(there)), there);
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

}  // namespace

// In double, one case of each formula: its options are the same code.
TEST_CASE("CrossEntropy is its definition", "[nn]") {
  check_cross_entropy<float, CrossEntropy>(0, 0);
  check_cross_entropy<float, With<CrossEntropy, LabelSmoothing<1, 10>>>(0.1, 0);
  check_cross_entropy<float, With<CrossEntropy, ZLoss<1, 100>>>(0, 0.01);
  check_cross_entropy<float, With<CrossEntropy, ZLoss<1, 1000>, LabelSmoothing<1, 1>>>(1, 0.001);
  check_cross_entropy<double, With<CrossEntropy, ZLoss<1, 1000>, LabelSmoothing<1, 10>>>(0.1,
                                                                                         0.001);
}
TEMPLATE_TEST_CASE("MSE is its definition", "[nn]", float, double) {
  check_elements<TestType, MSE, op_kind::squared_error>(
      [](double x, double t) { return (x - t) * (x - t); },
      [](double x, double t) { return 2 * (x - t); });
}
TEST_CASE("BCE is its definition", "[nn]") {
  check_elements<float, BCE, op_kind::element_loss>(
      [](double x, double t) {
        return -t * std::log(sigmoid(x)) - (1 - t) * std::log(sigmoid(-x));
      },
      [](double x, double t) { return sigmoid(x) - t; });
}
TEST_CASE("Huber is its definition", "[nn]") {
  auto const value = [](double delta) {
    return [delta](double x, double t) {
      double const d = std::fabs(x - t);
      return d <= delta ? d * d / 2 : delta * (d - delta / 2);
    };
  };
  auto const slope = [](double delta) {
    return [delta](double x, double t) { return std::max(-delta, std::min(delta, x - t)); };
  };
  check_elements<float, Huber<>, op_kind::element_loss>(value(1), slope(1));
  check_elements<double, Huber<5, 2>, op_kind::element_loss>(value(2.5), slope(2.5));
}

namespace {

/// F.cross_entropy(x, label, weight=classes, label_smoothing=smoothing, reduction="none") as
/// PyTorch documents it, with the weight of the label besides, for z; all of it times the row's
/// weight.
template <class T>
expected with_class_weights(numbers<T> const& of, double smoothing, double z, int there) {
  expected e;
  for (int r = 0; r < there; ++r) {
    int const label = some_labels[std::size_t(r)];
    if (label < 0) continue;
    auto const classes = [](int c) { return double((c * 7) % 4); };
    std::vector<double> row(of.x.data() + r * width, of.x.data() + (r + 1) * width);
    double const all = log_sum_exp(row), own = classes(label), weight = double(of.weight.items[r]);
    double targets = 0;
    for (int c = 0; c < width; ++c)
      targets += (1 - smoothing) * own * (c == label) + smoothing / width * classes(c);
    for (int c = 0; c < width; ++c) {
      double const t = (1 - smoothing) * own * (c == label) + smoothing / width * classes(c);
      double const p = std::exp(row[std::size_t(c)] - all);
      e.loss -= weight * t * (row[std::size_t(c)] - all);
      e.gradient[std::size_t(r * width + c)] = weight * (p * targets - t + 2 * z * own * all * p);
    }
    e.loss += weight * own * z * all * all;
  }
  return e;
}
using Classes = ClassWeights<0, 3, 2, 1, 0, 3, 2, 1, 0, 3, 2, 1, 0, 3, 2, 1, 0, 3, 2, 1, 0>;

/// (1 - softmax(x)[label])^2 a + l b
struct Score : LabelLoss<Score, Target<"a">, Weights<"w">, Target<"b">> {
  template <class T>
  PIPE_HD static PIPE_INLINE T value(T l, T a, T b) {
    T const q = T(1) - math::exp(l);
    return q * q * a + l * b;
  }
  template <class T>
  PIPE_HD static PIPE_INLINE T slope(T l, T a, T b) {
    T const p = math::exp(l);
    return b - T(2) * (T(1) - p) * p * a;
  }
};

/// (x - target)^2 a + x b
struct Mixed : ElementLoss<Mixed, Target<"a">, Target<"b">, Weights<"w">> {
  template <class T>
  PIPE_HD static PIPE_INLINE T value(T x, T target, T a, T b) {
    T const d = x - target, square = d * d;
    return square * a + x * b;
  }
  template <class T>
  PIPE_HD static PIPE_INLINE T slope(T x, T target, T a, T b) {
    return T(2) * (x - target) * a + b;
  }
};

}  // namespace

TEST_CASE("weights of classes are PyTorch's", "[nn]") {
  numbers<double> in_double;
  check<With<CrossEntropy, Classes, Weights<"w">>, op_kind::cross_entropy>(
      in_double, some_labels.data(), with_class_weights(in_double, 0, 0, rows), rows);
  numbers<float> of;
  check<With<CrossEntropy, Weights<"w">, LabelSmoothing<1, 4>, Classes, ZLoss<1, 8>>,
        op_kind::cross_entropy>(of, some_labels.data(), with_class_weights(of, 0.25, 0.125, 5), 5);
}
TEMPLATE_TEST_CASE("a BCE counts positives as often as it is told", "[nn]", float, double) {
  check_elements<TestType, With<BCE, PosWeight<7, 2>>, op_kind::element_loss>(
      [](double x, double t) {
        return -3.5 * t * std::log(sigmoid(x)) - (1 - t) * std::log(sigmoid(-x));
      },
      [](double x, double t) { return (1 - t) * sigmoid(x) - 3.5 * t * sigmoid(-x); });
}
TEST_CASE("a formula reads further targets, and rows have weights", "[nn]") {
  numbers<float> of;
  expected element, label;
  for (int r = 0; r < rows; ++r) {
    double const w = double(of.weight[r]);
    std::vector<double> row(of.x.data() + r * width, of.x.data() + (r + 1) * width);
    for (int c = 0; c < width; ++c) {
      int const i = r * width + c;
      double const x = double(of.x[i]), t = double(of.target[i]), a = double(of.second[i]),
                   b = double(of.third[i]);
      element.loss += w * ((x - t) * (x - t) * a + x * b);
      element.gradient[std::size_t(i)] = w * (2 * (x - t) * a + b);
    }
    int const y = some_labels[std::size_t(r)];
    if (y < 0) continue;
    double const all = log_sum_exp(row), l = row[std::size_t(y)] - all, a = double(of.second[r]),
                 b = double(of.third[r]);
    label.loss += w * ((1 - std::exp(l)) * (1 - std::exp(l)) * a + l * b);
    for (int c = 0; c < width; ++c)
      label.gradient[std::size_t(r * width + c)] = w *
                                                   (b - 2 * (1 - std::exp(l)) * std::exp(l) * a) *
                                                   ((c == y) - std::exp(row[std::size_t(c)] - all));
  }
  check<Mixed, op_kind::element_loss>(of, of.target.data(), element, rows);
  check<Score, op_kind::cross_entropy>(of, some_labels.data(), label, rows);
}

namespace {

/// The mean that a trainer reports, from its own outputs and labels.
template <class Loss, class Term>
void check_mean(Term term, bool counts_elements) {
  using trainer = Pipeline<Ends<Loss>, PortableHost, MicroBatches<3>, MicroBatchSize<2>>;
  trainer t({.seed = 4});
  laws::sample_batch<trainer> const data(4);
  std::vector<float> outputs(std::size_t(trainer::samples * trainer::outputs_per_sample));
  t.forward(data.view(), outputs);
  double sum = 0, terms = 0;
  if (counts_elements) {
    for (std::size_t i = 0; i < outputs.size(); ++i)
      sum += term(outputs, i, double(data.labels[i])), ++terms;
  } else {
    for (std::size_t r = 0; r < data.labels.size(); ++r)
      if (data.labels[r] >= 0) sum += term(outputs, r, double(data.labels[r])), ++terms;
    CHECK(terms < double(data.labels.size()));
  }
  CHECK(t.evaluate(data.view()) == Approx(sum / terms).epsilon(1e-5));
  CHECK(t.gradients(data.view()).loss == Approx(sum / terms).epsilon(1e-5));
}

}  // namespace

TEST_CASE("targets of BCE are refused where they are no probabilities", "[nn]") {
  using trainer = Pipeline<Ends<BCE>, PortableHost, MicroBatches<3>, MicroBatchSize<2>>;
  trainer t({.seed = 4});
  laws::sample_batch<trainer> data(4);
  data.labels[0] = 0, data.labels[1] = 1;
  t.step(data.view());
  auto const before = laws::snapshot(t).values;
  for (float const bad :
       {2.0f, -0.25f, std::nextafter(1.0f, 2.0f), std::numeric_limits<float>::infinity(),
        std::numeric_limits<float>::quiet_NaN()}) {
    data.labels[5] = bad;
    CHECK_THROWS_AS(t.step(data.view()), data_error);
    CHECK_THROWS_AS(t.evaluate(data.view()), data_error);
    CHECK_THROWS_WITH(t.gradients(data.view()), Catch::Contains(" at position 5 is not in [0, 1]"));
  }
  CHECK(laws::same_numbers(before, laws::snapshot(t).values));
}
TEST_CASE("the loss of a mini-batch is the mean over what counts", "[nn]") {
  check_mean<BCE>([](auto const& x, std::size_t i,
                     double t) { return std::log1p(std::exp(double(x[i]))) - t * double(x[i]); },
                  true);
  check_mean<With<CrossEntropy, LabelSmoothing<1, 5>, ZLoss<1, 50>>>(
      [](auto const& x, std::size_t r, double label) {
        std::vector<double> const row(x.begin() + long(r) * width, x.begin() + long(r + 1) * width);
        double const all = log_sum_exp(row);
        double mean = 0;
        for (double v : row) mean += v / width;
        return all - 0.8 * row[std::size_t(label)] - 0.2 * mean + 0.02 * all * all;
      },
      false);
}

namespace {

double softplus(double x) { return std::log1p(std::exp(x)); }

template <class Loss, int MicroBatchCount = 3>
using Of = Pipeline<Ends<Loss>, PortableHost, MicroBatches<MicroBatchCount>, MicroBatchSize<2>>;

/// The loss of a trainer of Ends<Loss> on a mini-batch of five samples: sum / count, where
/// terms(row, outputs, add) calls add(weight, term) for each term of a row, and what counts is the
/// sum of the weights, or 1. Returns `sum`.
template <class Loss, class Terms>
double check_weighted(bool sums, Terms terms) {
  using trainer = Of<Loss>;
  trainer t({.seed = 4});
  laws::sample_batch<trainer> const data(4);
  auto const batch = data.view(5);
  std::vector<float> outputs(std::size_t(5 * trainer::outputs_per_sample));
  t.forward(batch, outputs);
  double sum = 0, count = 0;
  for (std::size_t r = 0; r < 25; ++r)
    terms(data, r, outputs.data() + r * width, [&](double weight, double term) {
      sum += weight * term;
      count += weight;
    });
  if (sums) count = 1;
  CHECK(t.loss_terms(batch) == Approx(count).epsilon(1e-6));
  CHECK(t.evaluate(batch) == Approx(sum / count).epsilon(1e-5));
  CHECK(t.gradients(batch).loss == Approx(sum / count).epsilon(1e-5));
  return sum;
}
double minus_log_probability(float const* x, int label) {
  return log_sum_exp(std::vector<double>(x, x + width)) - double(x[label]);
}

}  // namespace

TEST_CASE("a weighted mean is over the sum of the weights, as PyTorch's", "[nn]") {
  check_weighted<With<CrossEntropy, Weights<"w">, Classes>>(
      false, [](auto const& data, std::size_t r, float const* x, auto add) {
        if (int const y = data.labels[r]; y >= 0)
          add(double(data.numbers[1][r]) * ((y * 7) % 4), minus_log_probability(x, y));
      });
  check_weighted<With<MSE, Weights<"w">>>(
      false, [](auto const& data, std::size_t r, float const* x, auto add) {
        for (std::size_t c = 0; c < width; ++c)
          add(double(data.numbers[1][r]),
              std::pow(double(x[c]) - double(data.labels[r * width + c]), 2));
      });
}
TEST_CASE("a weighted mean of a data set is that of its mini-batch", "[nn]") {
  using trainer = Of<With<CrossEntropy, Weights<"w">, Classes>>;
  trainer t({.seed = 4});
  laws::sample_batch<trainer> const data(4);
  CHECK(evaluate_all(t, data.view(6)) == t.evaluate(data.view(6)));
}
TEST_CASE("a loss may be a sum", "[nn]") {
  using CrossEntropySum = With<CrossEntropy, Reduction<Sum>>;
  double const sum = check_weighted<CrossEntropySum>(
      true, [](auto const& data, std::size_t r, float const* x, auto add) {
        if (int const y = data.labels[r]; y >= 0) add(1, minus_log_probability(x, y));
      });
  Of<CrossEntropySum, 1> small({.seed = 4});  // it stays a sum in mini-batches of two
  laws::sample_batch<Of<CrossEntropySum>> const all(4);
  CHECK(evaluate_all(small, all.view<Of<CrossEntropySum, 1>>(5)) == Approx(sum).epsilon(1e-5));
  check_weighted<With<BCE, Reduction<Sum>, Weights<"w">>>(
      true, [](auto const& data, std::size_t r, float const* x, auto add) {
        for (std::size_t c = 0; c < width; ++c)
          add(double(data.numbers[1][r]),
              softplus(double(x[c])) - double(x[c]) * double(data.labels[r * width + c]));
      });
  static_assert(std::is_same_v<Ends<With<MSE, Reduction<Mean>>>::loss, With<MSE, Reduction<Mean>>>);
}
