// SPDX-License-Identifier: BSL-1.0
//
// The losses that docs/howto/own_losses.md shows: their gradients are right, and they train what
// they are for.
#include "catch.hpp"

#include <algorithm>
#include <cmath>
#include <random>

#include <pipe/train/check_gradients.hpp>

#include "../../examples/cart_pole/clipped.hpp"
#include "laws/layer_laws.hpp"

using namespace pp;

namespace {

// [element]
/// A quantile instead of the mean: what lies above it costs nine times what lies below.
struct Pinball : ElementLoss<Pinball> {
  template <class T>
  PIPE_HD static PIPE_INLINE T value(T x, T target) {
    return target > x ? T(0.9) * (target - x) : T(0.1) * (x - target);
  }
  template <class T>
  PIPE_HD static PIPE_INLINE T slope(T x, T target) {
    return target > x ? T(-0.9) : T(0.1);
  }
};

struct Forecast : Model<Input<8>, Linear<32>, Tanh, Linear<1>, Pinball> {};
// [/element]

// [targets]
/// Squared error in units of each measurement's own variance.
struct Measured : ElementLoss<Measured, Target<"variance">> {
  template <class T>
  PIPE_HD static PIPE_INLINE T value(T x, T target, T variance) {
    return (x - target) * (x - target) / (T(2) * variance);
  }
  template <class T>
  PIPE_HD static PIPE_INLINE T slope(T x, T target, T variance) {
    return (x - target) / variance;
  }
};
// [/targets]

/// -(1 - p)^2 log p (Lin et al., 2017).
struct Focal : LabelLoss<Focal, Weights<"weight">> {
  template <class T>
  PIPE_HD static PIPE_INLINE T value(T l) {
    T const q = T(1) - math::exp(l);
    return -(q * q * l);
  }
  template <class T>
  PIPE_HD static PIPE_INLINE T slope(T l) {
    T const p = math::exp(l), q = T(1) - p;
    return q * (T(2) * p * l - q);
  }
};

/// A formula that derives from nothing.
struct Cubed {
  template <class T>
  PIPE_HD static PIPE_INLINE T value(T x, T target) {
    return (x - target) * (x - target) * (x - target);
  }
  template <class T>
  PIPE_HD static PIPE_INLINE T slope(T x, T target) {
    return T(3) * (x - target) * (x - target);
  }
};

}  // namespace

TEST_CASE("the gradients of own losses are right", "[laws]") {
  // [check]
  CHECK(check_loss<Pinball, Input<5>>().ok());
  CHECK(check_loss<Measured, Input<4, 5>>().ok());
  CHECK(check_loss<Clipped, Input<4, 5>>().ok());
  // [/check]
  CHECK(check_loss<Focal, Input<3, 4>>().ok());
  CHECK(check_loss<ElementLoss<Cubed>, Input<5>>().ok());
}

TEST_CASE("Pinball finds a quantile", "[laws]") {
  using trainer = Pipeline<Forecast, PortableHost, MicroBatches<2>, MicroBatchSize<32>, Adam>;
  trainer t({.seed = 1, .optimizer = {.learning_rate = 0.01}});
  std::mt19937 bits(1);
  std::uniform_real_distribution<float> draw(0, 1);
  std::vector<float> x(std::size_t(8 * trainer::samples), 1.0f),
      y(static_cast<std::size_t>(trainer::samples));
  for (int step = 0; step < 400; ++step) {
    for (float& target : y) target = draw(bits);
    t.step({x, y});
  }
  std::vector<float> found(y.size());
  t.forward(x, found);
  CHECK(found[0] == Approx(0.9).margin(0.05));
}

namespace {

// [policy]
struct Policy : Model<Input<4>, Linear<16>, Tanh, Linear<4>, Clipped> {};
using Actor = Pipeline<Policy, MicroBatches<2>, MicroBatchSize<32>, PortableHost, Adam>;

/// Which of four signs is shown? One is shown, one is answered; the reward is 1 for the right one.
/// Returns the share of rewards.
double play_and_learn(Actor& actor, std::mt19937& bits) {
  constexpr std::size_t games = Actor::samples;
  std::vector<float> shown(4 * games), scores(4 * games), old(games), advantage(games);
  std::vector<int> sign(games), answer(games);
  for (std::size_t g = 0; g < games; ++g) shown[4 * g + std::size_t(sign[g] = int(bits() % 4))] = 1;
  actor.forward(shown, scores);
  double rewards = 0;
  for (std::size_t g = 0; g < games; ++g) {
    double chance[4], sum = 0;
    for (std::size_t a = 0; a < 4; ++a) sum += chance[a] = std::exp(double(scores[4 * g + a]));
    answer[g] = std::discrete_distribution<int>(chance, chance + 4)(bits);
    old[g] = float(std::log(chance[answer[g]] / sum));
    rewards += answer[g] == sign[g];
  }
  for (std::size_t g = 0; g < games; ++g)
    advantage[g] = float((answer[g] == sign[g]) - rewards / games);
  Actor::batch b{shown, answer};
  b.set<"old">(old).set<"advantage">(advantage);
  for (int pass = 0; pass < 4; ++pass) actor.step(b);
  return rewards / games;
}
// [/policy]

}  // namespace

TEST_CASE("Clipped trains a policy", "[laws]") {
  Actor actor({.seed = 3, .optimizer = {.learning_rate = 0.01}});
  std::mt19937 bits(7);
  double const first = play_and_learn(actor, bits);
  double last = 0;
  for (int round = 0; round < 60; ++round) last = play_and_learn(actor, bits);
  CHECK(first < 0.5);
  CHECK(last > 0.9);
}
