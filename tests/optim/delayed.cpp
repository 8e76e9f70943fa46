// SPDX-License-Identifier: BSL-1.0
//
// What optimizers make of gradients that are one update old. Error feedback: where gradients do not
// depend on the weights, that its steps are those of the optimizer inside and differences of them;
// on a quadratic, its recurrence, and where that converges. NAdam: its recurrence on a quadratic.
#include "catch.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "laws/data.hpp"
#include "laws/slope.hpp"
#include "laws/worse.hpp"

using namespace pp;
using laws::Slope;

namespace {

/// A matrix and a vector.
struct Flat : Model<Input<4>, Linear<3>, Slope> {};
template <class Optimizer>
using Trainer = Pipeline<Flat, Optimizer, FP64, PortableHost, MicroBatches<2>, MicroBatchSize<4>>;

/// Steps at rates that change, against sums of what O's own steps without decay move the weights.
template <class O>
void adds_differences(O o, double correction = 1) {
  INFO(ErrorFeedback<O>::name);
  double const decay = o.weight_decay, rate = o.learning_rate;
  typename Trainer<ErrorFeedback<O>>::settings with{.seed = 3};
  static_cast<O&>(with.optimizer) = o;
  with.optimizer.correction = correction;
  typename Trainer<O>::settings without{.seed = 3, .optimizer = o};
  without.optimizer.weight_decay = 0;
  if constexpr (requires { o.others; }) without.optimizer.others.weight_decay = 0;
  Trainer<ErrorFeedback<O>> corrected(with);
  Trainer<O> plain(without);
  auto const ours = corrected.parameters(), theirs = plain.parameters();
  std::vector<double> expected[2], last[2];
  for (std::size_t i = 0; i < 2; ++i)
    expected[i].assign(ours[i].values.begin(), ours[i].values.end());
  double most = 0;
  for (int step = 1; step <= 8; ++step) {
    double const now = rate * (1 + 0.2 * step);
    laws::sample_batch<Trainer<O>> const data(std::uint64_t(step) + 20);
    auto const before = laws::snapshot(plain).values;
    plain.step(data.view(), now);
    corrected.step(data.template view<Trainer<ErrorFeedback<O>>>(), now);
    for (std::size_t i = 0, k = 0; i < 2; ++i) {
      if (step == 1) last[i].resize(ours[i].values.size());
      for (std::size_t e = 0; e < expected[i].size(); ++e, ++k) {
        double const u = (before[k] - theirs[i].values[e]) / now;
        if (step == 1) last[i][e] = u;
        double& w = expected[i][e];
        if (ours[i].rows > 1) w *= 1 - now * decay;
        w -= now * (u + correction * (u - last[i][e]));
        last[i][e] = u;
        most = laws::worse(most, std::fabs(w - ours[i].values[e]));
      }
    }
  }
  CHECK(most < 1e-12);
}

/// The loss w^2, whose slope is 2 w.
struct Square : Model<Input<1>, Linear<1, NoBias>, MSE> {};

/// w after each step under PipeDream2BW, whose gradients are one update old, from w = 1.
template <class Optimizer>
std::vector<double> delayed(Optimizer const& o, int steps) {
  using trainer = Pipeline<Square, Optimizer, FP64, MicroBatches<1>, PipeDream2BW<>>;
  trainer t({.optimizer = o});
  std::vector<double> const one{1}, zero{0};
  std::vector<typename trainer::batch> const data{{one, zero}};
  t.parameters()[0].values[0] = 1;
  t.parameters_changed();
  std::vector<double> all;
  for (int step = 0; step < steps; ++step) {
    t.train(data);
    all.push_back(t.parameters()[0].values[0]);
  }
  return all;
}
/// The same by the recurrence.
std::vector<double> recurrence(SGD const& o, double correction, int steps) {
  std::vector<double> all;
  double w = 1, before = 1, m = 0, last = 2;
  for (int step = 0; step < steps; ++step) {
    m = o.momentum * m + 2 * before;
    double const next = w - o.learning_rate * (m + correction * (m - last));
    before = w, w = next, last = m;
    all.push_back(w);
  }
  return all;
}
/// The largest of the last ten.
double at_the_end(std::vector<double> const& all) {
  double most = 0;
  for (auto w = all.end() - 10; w != all.end(); ++w) most = laws::worse(most, std::fabs(*w));
  return most;
}

}  // namespace

TEST_CASE("error feedback adds the difference of two updates", "[optim]") {
  adds_differences(SGD{.learning_rate = 0.1, .momentum = 0.9, .weight_decay = 0.3});
  adds_differences(SGD{.learning_rate = 0.1, .momentum = 0.8, .nesterov = true}, 0.5);
  adds_differences(Adam{.learning_rate = 0.02, .weight_decay = 0.3});
  adds_differences(AdamW{.learning_rate = 0.02, .weight_decay = 0.3});
  adds_differences(NAdam{.learning_rate = 0.02, .momentum_decay = 0.2, .weight_decay = 0.3});
  adds_differences(Lion{.learning_rate = 0.02, .weight_decay = 0.3}, 2);
  adds_differences(Adamax{.learning_rate = 0.02, .weight_decay = 0.3});
  adds_differences(RMSprop{.learning_rate = 0.02, .weight_decay = 0.3, .momentum = 0.8});
  adds_differences(CenteredRMSprop{.learning_rate = 0.02, .alpha = 0.9, .weight_decay = 0.3});
  adds_differences(
      Adagrad{.learning_rate = 0.1, .weight_decay = 0.3, .initial_accumulator_value = 0.01}, 0.5);
  adds_differences(Muon{.learning_rate = 0.05, .others = {.learning_rate = 0.01}});
}
TEST_CASE("error feedback on a quadratic with a delay of one update", "[optim]") {
  for (double const correction : {0., 0.5, 1.})
    for (double const momentum : {0., 0.5, 0.9}) {
      SGD const o{.learning_rate = 0.04, .momentum = momentum};
      auto const ours = delayed(ErrorFeedback<SGD>{o, correction}, 40);
      auto const expected = recurrence(o, correction, 40);
      for (std::size_t i = 0; i < ours.size(); ++i)
        CHECK(ours[i] == Approx(expected[i]).epsilon(1e-12).margin(1e-14));
    }
  SGD const o{.learning_rate = 0.04, .momentum = 0.9};
  auto const without = delayed(o, 40), with_none = delayed(ErrorFeedback<SGD>{o, 0}, 40);
  for (std::size_t i = 0; i < without.size(); ++i)
    CHECK(with_none[i] == Approx(without[i]).epsilon(1e-12).margin(1e-14));
}
TEST_CASE("error feedback makes larger rates stable with momentum, smaller ones without",
          "[optim]") {
  // With rate * curvature = 0.2 and momentum 0.9: divided by 0.970 and multiplied by 1.049 a step.
  SGD const momentum{.learning_rate = 0.1, .momentum = 0.9};
  CHECK(at_the_end(delayed(ErrorFeedback<SGD>{momentum}, 400)) < 1e-4);
  CHECK(at_the_end(delayed(momentum, 400)) > 1e4);
  // Without momentum the limit falls from 1 to (sqrt(5) - 1) / 2.
  SGD const plain{.learning_rate = 0.4};
  CHECK(at_the_end(delayed(ErrorFeedback<SGD>{plain}, 100)) > 1e2);
  CHECK(at_the_end(delayed(plain, 100)) < 1e-2);
  // Below it the corrected weights shrink as if there were no delay: by 1 - x to the third order of
  // x, where the delayed ones do to the second.
  double const x = 0.1;
  auto const ratio = [](std::vector<double> const& all) { return all.back() / *(all.end() - 2); };
  double const with = ratio(delayed(ErrorFeedback<SGD>{{.learning_rate = x / 2}}, 60)),
               without = ratio(delayed(SGD{.learning_rate = x / 2}, 60));
  CHECK(std::fabs(with - (1 - x)) < 2 * x * x * x);
  CHECK(std::fabs(without - (1 - x)) > x * x);
}
TEST_CASE("error feedback has the settings of its optimizer, and names its state", "[optim]") {
  using trainer = Trainer<ErrorFeedback<Muon>>;
  trainer t({.optimizer = {{.learning_rate = 0.1, .others = {.learning_rate = 0.2}}, 0.5}});
  CHECK(std::string(ErrorFeedback<Muon>::name) == "ErrorFeedback<Muon>");
  CHECK_THROWS_AS(trainer({.optimizer = {{}, -1}}), data_error);
  CHECK_THROWS_AS(trainer({.optimizer = {{.momentum = 2}}}), data_error);
  constexpr custom::named_states of_vectors =
      ErrorFeedback<AdamW>::states_of(custom::tensor_kind::vector);
  static_assert(of_vectors.count == 3 && ErrorFeedback<AdamW>::states == 3);
  CHECK(std::string(of_vectors.items[0].name) == "last_update");
  CHECK(std::string(of_vectors.items[1].name) == "exp_avg");
}

TEST_CASE("NAdam on a quadratic with a delay of one update", "[optim]") {
  NAdam const o{.learning_rate = 0.05, .beta1 = 0.99, .beta2 = 0.9, .momentum_decay = 0.5};
  auto const ours = delayed(o, 60);
  double w = 1, before = 1, m = 0, v = 0, product = 1;
  for (int t = 1; t <= 60; ++t) {
    // Dozat, 2016, with the schedule of his section 3.
    auto const momentum = [&](int i) {
      return o.beta1 * (1 - 0.5 * std::pow(0.96, i * o.momentum_decay));
    };
    double const g = 2 * before;
    product *= momentum(t);
    m = o.beta1 * m + (1 - o.beta1) * g;
    v = o.beta2 * v + (1 - o.beta2) * g * g;
    double const look_ahead = momentum(t + 1) * m / (1 - product * momentum(t + 1)),
                 now = (1 - momentum(t)) * g / (1 - product);
    double const next = w - o.learning_rate * (look_ahead + now) /
                                (std::sqrt(v / (1 - std::pow(o.beta2, t))) + o.epsilon);
    before = w, w = next;
    CHECK(ours[std::size_t(t - 1)] == Approx(w).epsilon(1e-10));
  }
}
TEST_CASE("NAdam's product of momenta is exact after many steps", "[optim]") {
  for (double const decay : {0., 1e-6, 4e-3, 0.3, 50.})
    for (double const beta : {0., 0.5, 0.9, 0.999999}) {
      NAdam const o{.beta1 = beta, .momentum_decay = decay};
      long double product = 1;
      for (long t = 1; t <= 100000; ++t) {
        product *= beta * (1 - 0.5L * std::pow(0.96L, (long double)t * decay));
        if (t != 1 && t != 17 && t != 1000 && t != 100000) continue;
        CHECK(o.product(t) == Approx(double(product)).epsilon(1e-11).margin(1e-18));
      }
    }
}
