// SPDX-License-Identifier: BSL-1.0
//
// Losses by rows, with the formulas that docs/howto/own_losses.md shows: their gradients are right,
// their values are those of the formulas, whatever the cut, the threads, and the samples that are
// there, with labels of another width than the output and without labels.
#include "catch.hpp"

#include <array>
#include <cmath>

#include <pipe/train/check_gradients.hpp>

#include "laws/divergence.hpp"
#include "laws/layer_laws.hpp"

using namespace pp;

namespace {

// [gaussian]
/// The negative log-likelihood of a number: the output is its mean and the log of its variance.
struct GaussianLikelihood : RowLoss<GaussianLikelihood> {
  static constexpr int labels = 1;
  template <class T>
  PIPE_HD static PIPE_INLINE T value(custom::row<T const> x, custom::row<T const> label) {
    T const off = x[0] - label[0];
    return (off * off * math::exp(-x[1]) + x[1]) / T(2);
  }
  template <class T>
  PIPE_HD static PIPE_INLINE void slopes(custom::row<T const> x, custom::row<T const> label,
                                         custom::row<T> to) {
    T const off = x[0] - label[0], weighted = off * math::exp(-x[1]);
    to[0] = weighted;
    to[1] = (T(1) - off * weighted) / T(2);
  }
};
// [/gaussian]

/// A margin that each row brings, and the weights of rows.
struct Margin : RowLoss<Margin, Target<"margin">, Weights<"weight">> {
  static constexpr int labels = 2;
  template <class T>
  PIPE_HD static PIPE_INLINE T value(custom::row<T const> x, custom::row<T const> label, T margin) {
    T const a = x[0] - label[0], b = (x[2] - label[1]) * x[1];
    return margin * (a * a) + b;
  }
  template <class T>
  PIPE_HD static PIPE_INLINE void slopes(custom::row<T const> x, custom::row<T const> label,
                                         T margin, custom::row<T> to) {
    to[0] = T(2) * margin * (x[0] - label[0]);
    to[1] = x[2] - label[1];
    to[2] = x[1];
  }
};

/// A formula that derives from nothing: x0 x1 over the rows.
struct Product {
  static constexpr int labels = 0;
  template <class T>
  PIPE_HD static PIPE_INLINE T value(custom::row<T const> x, custom::row<T const>) {
    return x[0] * x[1];
  }
  template <class T>
  PIPE_HD static PIPE_INLINE void slopes(custom::row<T const> x, custom::row<T const>,
                                         custom::row<T> to) {
    to[0] = x[1];
    to[1] = x[0];
  }
};

struct Regression : Model<Input<5>, Linear<6>, Tanh, Linear<2>, GaussianLikelihood> {};

// [encoder]
/// An autoencoder whose code is drawn towards a normal distribution.
struct Autoencoder
    : Model<Input<6>, Linear<8>, Tanh, Linear<4>, Stash<"code">, Linear<8>, Tanh, Linear<6>,
            Losses<MSE, FurtherLoss<"divergence", "code", LossWeight<1, 10>, Divergence>>> {};
// [/encoder]

struct Prior : Model<Input<3>, Linear<5>, Tanh, Linear<4>, Divergence> {};

template <class M, class... Options>
using Trained = Pipeline<M, PortableHost, MicroBatches<3>, MicroBatchSize<4>, SGD, Options...>;

std::vector<float> numbers(std::size_t count, int seed) {
  std::vector<float> all(count);
  for (std::size_t i = 0; i < count; ++i)
    all[i] = float(std::sin(double(i * 7 + std::size_t(seed) * 13) * 1.7));
  return all;
}

/// The losses of three steps, the last one of a mini-batch with `last` samples.
template <class Trainer, class Make>
std::array<double, 3> three_steps(Make const& make) {
  Trainer t({.seed = 4, .optimizer = {.learning_rate = 0.05}});
  std::array<double, 3> losses{};
  for (int step = 0; step < 3; ++step) losses[std::size_t(step)] = t.step(make(step)).loss;
  return losses;
}

}  // namespace

TEST_CASE("the gradients of losses by rows are right", "[laws]") {
  CHECK(check_loss<SoftCrossEntropy, Input<5>>().ok());
  CHECK(check_loss<SoftCrossEntropy, Input<3, 4>>().ok());
  CHECK(check_loss<TripletMarginLoss<>, Input<12>>().ok());
  CHECK(check_loss<With<L1Loss, Weights<"weight">>, Input<5>>().ok());
  CHECK(check_loss<FocalLoss<3, 1, 2, Reduction<Sum>>, Input<5>>().ok());
  CHECK(check_loss<GaussianLikelihood, Input<2>>().ok());
  CHECK(check_loss<Divergence, Input<6>>().ok());
  CHECK(check_loss<Divergence, Input<3, 4>>().ok());
  CHECK(check_loss<Margin, Input<3>>().ok());
  CHECK(check_loss<Margin, Input<2, 3>>().ok());
  CHECK(check_loss<RowLoss<Product>, Input<2>>().ok());
  CHECK(check_loss<RowLoss<Product, Reduction<Sum>>, Input<2>>().ok());
}

TEST_CASE("a loss by rows is the mean of its formula over the rows that are there", "[laws]") {
  using trainer = Trained<Regression>;
  static_assert(trainer::labels_per_sample == 1);
  trainer t({.seed = 2});
  for (int samples : {12, 7, 1}) {
    auto const x = numbers(std::size_t(5 * samples), samples), y = numbers(std::size_t(samples), 3);
    std::vector<float> out(std::size_t(2 * samples));
    t.forward(x, out);
    double sum = 0;
    for (std::size_t i = 0; i < std::size_t(samples); ++i) {
      double const mean = out[2 * i], log_variance = out[2 * i + 1];
      sum += 0.5 * ((mean - y[i]) * (mean - y[i]) * std::exp(-log_variance) + log_variance);
    }
    CHECK(t.evaluate({x, y}) == Approx(sum / samples).epsilon(1e-5));
    CHECK(trainer::loss_terms({x, y}) == samples);
  }
}

TEST_CASE("a loss without labels needs none", "[laws]") {
  using trainer = Trained<Prior>;
  static_assert(trainer::labels_per_sample == 0);
  trainer t({.seed = 2});
  auto const x = numbers(std::size_t(3 * trainer::samples), 1);
  double const first = t.step({x, {}}).loss;
  CHECK(trainer::loss_terms({x, {}}) == trainer::samples);
  for (int step = 0; step < 40; ++step) t.step({x, {}});
  CHECK(t.evaluate({x, {}}) < 0.8 * first);
  auto const two = numbers(2, 1);
  CHECK_THROWS_AS(t.step({x, two}), data_error);
}

TEST_CASE("a further loss by rows without labels is not in the batch", "[laws]") {
  using trainer = Trained<Autoencoder>;
  trainer t({.seed = 2});
  auto const x = numbers(std::size_t(6 * trainer::samples), 1);
  auto const first = t.step({x, x});
  CHECK(first.losses[0] + 0.1 * first.losses[1] == Approx(first.loss).epsilon(1e-9));
  CHECK(first.losses[1] > 0);
  std::vector<float> none;
  none.reserve(4);  // an address, and no numbers
  trainer::batch same{x, x};
  same.set<"divergence">(none);
  for (int step = 0; step < 40; ++step) t.step(same);
  CHECK(t.evaluate({x, x}) < first.loss);
  none.resize(1);
  CHECK_THROWS_AS(t.step(same.set<"divergence">(none)), data_error);
}

TEST_CASE("losses by rows have the same bits for every cut and number of threads", "[laws]") {
  auto const regression = [](int step) {
    static std::vector<float> x, y;
    int const samples = step == 2 ? 5 : 12;
    x = numbers(std::size_t(5 * samples), step), y = numbers(std::size_t(samples), step + 9);
    return detail::batch_of<Regression, float, true>{x, y};
  };
  auto const one = three_steps<Trained<Regression>>(regression);
  CHECK(three_steps<Trained<Regression, Stages<2>>>(regression) == one);
  CHECK(three_steps<Trained<Regression, Stages<3>, GPipe>>(regression) == one);
  CHECK(three_steps<Trained<Regression, HostThreads<3>>>(regression) == one);

  auto const code = [](int step) {
    static std::vector<float> x;
    x = numbers(std::size_t(6 * (step == 2 ? 5 : 12)), step);
    return detail::batch_of<Autoencoder, float, true>{x, x};
  };
  auto const alone = three_steps<Trained<Autoencoder>>(code);
  CHECK(three_steps<Trained<Autoencoder, Stages<3>>>(code) == alone);
  CHECK(three_steps<Trained<Autoencoder, Stages<2>, ZeroBubbleH1>>(code) == alone);
  CHECK(three_steps<Trained<Autoencoder, Stages<2>, RecomputeAll>>(code) == alone);
}
