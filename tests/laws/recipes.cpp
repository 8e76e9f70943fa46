// SPDX-License-Identifier: BSL-1.0
//
// The models of several parts that docs/howto/recipes.md shows, each of which learns what it is
// for: an autoencoder that can be drawn from, two towers, twins, pairs, a student with a teacher, a
// mixture of normal distributions, and a classifier that is fooled.
#include "catch.hpp"

#include <cmath>
#include <random>

#include <pipe/pipe.hpp>
#include <pipe/train/check_gradients.hpp>

#include "laws/divergence.hpp"

using namespace pp;

namespace {

template <class M>
using Trained = Pipeline<M, PortableHost, MicroBatches<2>, MicroBatchSize<16>, Adam>;

std::vector<float> normal_numbers(std::size_t count, std::mt19937& bits) {
  std::normal_distribution<float> draw;
  std::vector<float> all(count);
  for (float& x : all) x = draw(bits);
  return all;
}

// [autoencoder]
/// e^(x / 2): a standard deviation from the log of a variance.
struct Deviation {
  static constexpr bool derivative_reads_output = true;
  template <class T>
  PIPE_HD static T forward(T x) {
    return math::exp(x / T(2));
  }
  template <class T>
  PIPE_HD static T derivative(T y) {
    return y / T(2);
  }
};

struct Variational
    : Model<Input<6>, Linear<16>, Tanh,
            ConcatOf<Seq<Linear<2>, Stash<"mean">>, Seq<Linear<2>, Stash<"log variance">>>,
            Stash<"code">, Recall<"log variance">,
            ProductOf<Map<Deviation>, Named<"noise", Input<2>>>, Pop<"mean">, Linear<16>, Tanh,
            Linear<6>,
            Losses<MSE, FurtherLoss<"divergence", "code", LossWeight<1, 100>, Divergence>>> {};
// [/autoencoder]

// [towers]
using Tower = Seq<Embedding<8>, Linear<8>, Tanh, Linear<4>>;

/// Whether a user likes an item: the dot product of what two towers make of them.
struct Towers : Model<Tokens<20, 1>, DotOf<Tower, Seq<Named<"item", Tokens<30, 1>>, Tower>>, BCE> {
};
// [/towers]

// [twins]
/// The contrastive loss (Hadsell, Chopra and LeCun, 2006) of a distance: d^2 / 2 for two of a kind
/// (label 1), max(1 - d, 0)^2 / 2 for others (label 0).
struct Contrastive : ElementLoss<Contrastive> {
  template <class T>
  PIPE_HD static PIPE_INLINE T value(T d, T same) {
    T const left = d < T(1) ? T(1) - d : T(0);
    return (same > T(0) ? d * d : left * left) / T(2);
  }
  template <class T>
  PIPE_HD static PIPE_INLINE T slope(T d, T same) {
    return same > T(0) ? d : d < T(1) ? d - T(1) : T(0);
  }
};

/// One network for both pictures.
struct Twins : Model<Input<8>,
                     PairwiseDistanceOf<Named<"twin", Seq<Linear<16>, Tanh, Linear<3>>>,
                                        Seq<Named<"second", Input<8>>, Tied<"twin">>>,
                     Contrastive> {};
// [/twins]

// [pairs]
/// Which word belongs to which picture, learned from pairs alone.
struct Pairs
    : Model<
          Input<8>,
          ConcatOf<Seq<Linear<16>, Tanh, Linear<4>, Normalize>,
                   Seq<Named<"word", Tokens<12, 1>>, Embedding<8>, Flatten, Linear<4>, Normalize>>,
          InfoNCE<1, 10, Symmetric>> {};
// [/pairs]

// [student]
/// Labels, and the distribution that a larger model gives.
struct Student : Model<Input<4>, Linear<16>, Tanh, Linear<3>, Stash<"logits">,
                       Losses<CrossEntropy, FurtherLoss<"teacher", "logits", SoftCrossEntropy>>> {};
// [/student]

// [mixture]
/// -log of the density of a label in a mixture of K normal distributions, of a row of K logits, K
/// means and K logs of deviations (Bishop, Mixture Density Networks, 1994).
template <int K>
struct Mixture : RowLoss<Mixture<K>> {
  static constexpr int labels = 1;
  template <class T>
  PIPE_HD static PIPE_INLINE T value(custom::row<T const> x, custom::row<T const> label) {
    T each[K], all = 0, with = 0;
    T const most = likelihoods(x, label[0], each);
    for (int k = 0; k < K; ++k) {
      all += math::exp(x[k] - x[0]);
      with += math::exp(each[k] - most);
    }
    return (x[0] + math::log(all)) - (most + math::log(with));
  }
  template <class T>
  PIPE_HD static PIPE_INLINE void slopes(custom::row<T const> x, custom::row<T const> label,
                                         custom::row<T> to) {
    T each[K], all = 0, with = 0;
    T const most = likelihoods(x, label[0], each);
    for (int k = 0; k < K; ++k) {
      all += math::exp(x[k] - x[0]);
      with += math::exp(each[k] - most);
    }
    for (int k = 0; k < K; ++k) {
      T const share = math::exp(each[k] - most) / with, narrow = math::exp(-x[2 * K + k]),
              off = (label[0] - x[K + k]) * narrow;
      to[k] = math::exp(x[k] - x[0]) / all - share;
      to[K + k] = -(share * off * narrow);
      to[2 * K + k] = share * (T(1) - off * off);
    }
  }

 private:
  /// Logs of weight times density, but for a constant; returns the largest.
  template <class T>
  PIPE_HD static PIPE_INLINE T likelihoods(custom::row<T const> x, T label, T (&each)[K]) {
    T most = 0;
    for (int k = 0; k < K; ++k) {
      T const off = (label - x[K + k]) * math::exp(-x[2 * K + k]);
      each[k] = (x[k] - x[2 * K + k]) - off * off / T(2);
      most = k == 0 || each[k] > most ? each[k] : most;
    }
    return most;
  }
};

struct Density : Model<Input<1>, Linear<16>, Tanh, Linear<6>, Mixture<2>> {};
// [/mixture]

// [fooled]
struct Classifier : Model<Input<8>, Linear<32>, Tanh, Linear<2>, CrossEntropy> {};

/// The inputs, each number moved by `amount` in the direction in which the loss grows: the fast
/// gradient sign method. Source: Goodfellow et al., Explaining and Harnessing Adversarial
/// Examples, 2015
template <class Trainer>
std::vector<float> fooled(Trainer& t, std::vector<float> x, std::vector<int> const& labels,
                          float amount) {
  auto const gradient = t.input_gradients({x, labels});
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] += gradient[i] > 0 ? amount : gradient[i] < 0 ? -amount : 0;
  return x;
}
// [/fooled]

}  // namespace

TEST_CASE("the gradients of the recipes' losses are right", "[laws]") {
  CHECK(check_loss<Divergence, Input<6>>().ok());
  CHECK(check_loss<Contrastive, Input<3>>().ok());
  CHECK(check_loss<Mixture<2>, Input<6>>().ok());
}

TEST_CASE("a variational autoencoder keeps what it codes", "[laws]") {
  using trainer = Trained<Variational>;
  trainer t({.seed = 1, .optimizer = {.learning_rate = 0.01}});
  std::mt19937 bits(1);
  double first = 0, last = 0;
  for (int step = 0; step < 300; ++step) {
    // Points on a plane in six dimensions.
    auto const at = normal_numbers(2 * trainer::samples, bits);
    std::vector<float> x;
    for (std::size_t i = 0; i < at.size(); i += 2)
      for (std::size_t k = 0; k < 6; ++k)
        x.push_back(at[i] * std::cos(float(k)) + at[i + 1] * std::sin(float(k)));
    // [noise]
    auto const noise = normal_numbers(2 * trainer::samples, bits);
    trainer::batch b{x, x};
    b.set<"noise">(noise);
    // [/noise]
    last = t.step(b).losses[0];
    if (step == 0) first = last;
  }
  CHECK(last < 0.2 * first);
}

TEST_CASE("two towers find who likes what", "[laws]") {
  using trainer = Trained<Towers>;
  trainer t({.seed = 1, .optimizer = {.learning_rate = 0.01}});
  std::mt19937 bits(1);
  std::vector<int> user(static_cast<std::size_t>(trainer::samples)), item(user.size());
  std::vector<float> likes(user.size()), scores(user.size());
  auto const draw = [&] {
    for (std::size_t i = 0; i < user.size(); ++i) {
      user[i] = int(bits() % 20), item[i] = int(bits() % 30);
      likes[i] = float(user[i] % 2 == item[i] % 2);
    }
    trainer::batch b{user, likes};
    b.set<"item">(item);
    return b;
  };
  for (int step = 0; step < 400; ++step) t.step(draw());
  t.forward(draw(), scores);
  int right = 0;
  for (std::size_t i = 0; i < user.size(); ++i) right += (scores[i] > 0) == (likes[i] > 0);
  CHECK(right > 9 * trainer::samples / 10);
}

TEST_CASE("twins tell two of a kind from others", "[laws]") {
  using trainer = Trained<Twins>;
  trainer t({.seed = 1, .optimizer = {.learning_rate = 0.01}});
  std::mt19937 bits(1);
  auto const make = [&](std::vector<float>& x, std::vector<float>& y, std::vector<float>& same) {
    x = normal_numbers(8 * trainer::samples, bits), y = normal_numbers(8 * trainer::samples, bits);
    same.assign(static_cast<std::size_t>(trainer::samples), 0);
    for (std::size_t i = 0; i < same.size(); ++i) {
      // The kind is in the first two numbers, the others are noise.
      int const kind = int(bits() % 3), other = bits() % 2 ? kind : (kind + 1) % 3;
      x[8 * i] = float(kind), x[8 * i + 1] = float(kind == 1) * 2;
      y[8 * i] = float(other), y[8 * i + 1] = float(other == 1) * 2;
      same[i] = float(kind == other);
    }
  };
  std::vector<float> x, y, same;
  double first = 0, last = 0;
  for (int step = 0; step < 400; ++step) {
    make(x, y, same);
    trainer::batch b{x, same};
    b.set<"second">(y);
    last = t.step(b).loss;
    if (step == 0) first = last;
  }
  CHECK(last < 0.2 * first);
}

TEST_CASE("pairs are found among all of a micro-batch", "[laws]") {
  using trainer = Trained<Pairs>;
  trainer t({.seed = 1, .optimizer = {.learning_rate = 0.01}});
  std::mt19937 bits(1);
  std::size_t const n = std::size_t(trainer::samples);
  std::vector<float> x, found(8 * n);
  std::vector<int> words(n);
  auto const draw = [&] {
    x = normal_numbers(8 * n, bits);
    for (std::size_t i = 0; i < n; ++i) {
      words[i] = int(bits() % 12);
      for (std::size_t k = 0; k < 8; ++k)
        x[8 * i + k] = 0.1f * x[8 * i + k] + float(std::sin(double(words[i]) * double(k + 1)));
    }
    trainer::batch b{x, {}};
    b.set<"word">(words);
    return b;
  };
  for (int step = 0; step < 400; ++step) t.step(draw());
  t.forward(draw(), found);
  std::size_t right = 0;
  for (std::size_t i = 0; i < n; ++i) {
    auto const score = [&](std::size_t j) {
      double sum = 0;
      for (std::size_t k = 0; k < 4; ++k)
        sum += double(found[8 * i + k]) * double(found[8 * j + 4 + k]);
      return sum;
    };
    std::size_t best = 0;
    for (std::size_t j = 1; j < n; ++j)
      if (score(j) > score(best)) best = j;
    right += words[best] == words[i];
  }
  CHECK(right > 9 * n / 10);
}

TEST_CASE("a student learns a teacher's distribution beside labels", "[laws]") {
  using trainer = Trained<Student>;
  trainer t({.seed = 1, .optimizer = {.learning_rate = 0.02}});
  std::mt19937 bits(1);
  auto const x = normal_numbers(4 * trainer::samples, bits);
  std::vector<int> labels(static_cast<std::size_t>(trainer::samples));
  std::vector<float> teacher;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    labels[i] = x[4 * i] > 0 ? 0 : 1;
    teacher.insert(teacher.end(), {x[4 * i] > 0 ? 0.7f : 0.2f, x[4 * i] > 0 ? 0.2f : 0.7f, 0.1f});
  }
  trainer::batch b{x, labels};
  b.set<"teacher">(teacher);
  step_result last{};
  for (int step = 0; step < 300; ++step) last = t.step(b);
  // The second loss cannot fall below the entropy of the teacher's distribution, 0.80.
  CHECK(last.losses[0] < 0.5);
  CHECK(last.losses[1] < 1.0);
}

TEST_CASE("a mixture finds both branches of a curve", "[laws]") {
  using trainer = Trained<Density>;
  trainer t({.seed = 3, .optimizer = {.learning_rate = 0.01}});
  std::mt19937 bits(1);
  std::vector<float> x(static_cast<std::size_t>(trainer::samples)), y(x.size());
  for (int step = 0; step < 800; ++step) {
    auto const noise = normal_numbers(x.size(), bits);
    for (std::size_t i = 0; i < x.size(); ++i) {
      x[i] = float(bits() % 1000) / 500 - 1;
      y[i] = (bits() % 2 ? 1.0f : -1.0f) * (2 + x[i]) + 0.1f * noise[i];
    }
    t.step({x, y});
  }
  std::vector<float> at(1, 0.5f), found(6);
  t.forward(at, found);
  CHECK(std::max(found[2], found[3]) == Approx(2.5).margin(0.3));
  CHECK(std::min(found[2], found[3]) == Approx(-2.5).margin(0.3));
  CHECK(found[0] == Approx(found[1]).margin(0.5));
}

TEST_CASE("the signs of a gradient fool a classifier more than other signs do", "[laws]") {
  using trainer =
      Pipeline<Classifier, PortableHost, InputGradients, MicroBatches<4>, MicroBatchSize<16>, Adam>;
  trainer t({.seed = 1, .optimizer = {.learning_rate = 0.01}});
  std::mt19937 bits(1);
  std::vector<int> labels(static_cast<std::size_t>(trainer::samples));
  std::vector<float> x;
  auto const draw = [&] {
    x = normal_numbers(8 * labels.size(), bits);
    for (std::size_t i = 0; i < labels.size(); ++i) {
      float sum = 0;
      for (std::size_t k = 0; k < 8; ++k) sum += k % 2 ? x[8 * i + k] : -x[8 * i + k];
      labels[i] = sum > 0;
    }
  };
  for (int step = 0; step < 300; ++step) draw(), t.step({x, labels});
  draw();
  constexpr float amount = 0.5f;
  auto moved = x;
  for (float& each : moved) each += bits() % 2 ? amount : -amount;
  double const random = t.evaluate({moved, labels}),
               worst = t.evaluate({fooled(t, x, labels, amount), labels});
  CHECK(accuracy(predict(t, x), labels) > 0.9);
  CHECK(accuracy(predict(t, fooled(t, x, labels, amount)), labels) < 0.5);
  CHECK(worst > 3 * random);
}
