// SPDX-License-Identifier: BSL-1.0
//
// Groups at work: each layer is trained as a model of its own with the group's settings would be,
// and what is frozen stays.
#include "catch.hpp"

#include <algorithm>
#include <cmath>

#include "laws/data.hpp"
#include "laws/worse.hpp"

using namespace pp;
using namespace pp::detail;

namespace {

using First = Group<LearningRate<1, 10>, WeightDecay<3>, Linear<5>>;
struct Grouped : Model<Input<2, 3>, First, LayerNorm, Frozen<Tanh, Linear<4>>,
                       Group<LearningRate<3>, WeightDecay<0>, Linear<4>>, Linear<2>, MSE> {};
/// Rate and decay of its ten parameters: two of First, two of the norm, two frozen, two of the
/// second group, two of the end.
constexpr double rate[] = {0.1, 0.1, 1, 1, 0, 0, 3, 3, 1, 1},
                 decay[] = {3, 0, 0, 0, 0, 0, 0, 0, 1, 0};

template <int N>
using Trainer = Pipeline<Grouped, AdamW, FP64, PortableHost, MicroBatches<2>, Stages<N>>;

}  // namespace

TEST_CASE("groups scale the learning rate and the decay", "[optim]") {
  AdamW const o{.learning_rate = 0.01, .weight_decay = 0.2};
  Trainer<1> t({.seed = 1, .optimizer = o});
  laws::disturb(t, 4, 0.2);
  auto parameters = t.parameters();
  REQUIRE(parameters.size() == 10);
  std::vector<std::vector<double>> m(10), v(10);
  for (std::size_t i = 0; i < 10; ++i) m[i].resize(parameters[i].values.size()), v[i] = m[i];
  double most = 0;
  for (int step = 1; step <= 5; ++step) {
    std::vector<std::vector<double>> before;
    for (auto const& p : parameters) before.emplace_back(p.values.begin(), p.values.end());
    laws::sample_batch<Trainer<1>> const data(std::uint64_t(step) + 1);
    t.step(data.view());
    for (std::size_t i = 0; i < 10; ++i) {
      CHECK(parameters[i].gradients.size() == (rate[i] > 0 ? parameters[i].values.size() : 0));
      for (std::size_t e = 0; e < before[i].size(); ++e) {
        double w = before[i][e];
        if (rate[i] > 0) {
          double const g = parameters[i].gradients[e], r = 0.01 * rate[i];
          m[i][e] = 0.9 * m[i][e] + 0.1 * g;
          v[i][e] = 0.999 * v[i][e] + 0.001 * g * g;
          w -= r * 0.2 * decay[i] * w;
          w -= r * (m[i][e] / (1 - std::pow(0.9, step))) /
               (std::sqrt(v[i][e] / (1 - std::pow(0.999, step))) + 1e-8);
          CHECK(parameters[i].values[e] != before[i][e]);
        }
        most = laws::worse(most, std::fabs(parameters[i].values[e] - w));
      }
    }
  }
  CHECK(most < 1e-12);
}

TEST_CASE("parameters that are trained alike are updated in one run", "[optim]") {
  using compiled = Trainer<1>::compiled;
  chunk_description const& c = compiled::memory().chunks[0];
  CHECK(c.updates.count == 5);  // of (0.1, 3), (0.1, 0), (1, 0), (3, 0) and (1, 1)
  long end = 0;
  for (int i = 0; i < c.updates.count; ++i) {
    CHECK(c.updates[i].begin == end);
    CHECK(c.updates[i].state == 2 * end);
    end = c.updates[i].end;
  }
  CHECK(end * long(sizeof(double)) == c.sizes.trained);
  CHECK(Trainer<1>::plan.trained == Trainer<1>::plan.parameters - (5 * 4 + 4));
  struct Flat : Model<Input<2, 3>, Repeat<5, Linear<3>, LayerNorm>, MSE> {};
  static_assert(Pipeline<Flat, AdamW, PortableHost>::compiled::memory().chunks[0].updates.count ==
                2);
}

TEST_CASE("a stage of frozen layers trains nothing and the others train on", "[optim]") {
  Trainer<1> one({.seed = 3});
  Trainer<6> six({.seed = 3});
  static_assert(Trainer<6>::plan.stages[2].parameters == 0);
  static_assert(Trainer<6>::plan.stages[3].parameters > 0 &&
                Trainer<6>::plan.stages[3].trained == 0);
  static_assert(Trainer<6>::plan.stages[3].gradient_bytes == 0 &&
                Trainer<6>::plan.stages[3].optimizer_bytes == 0);
  auto const start = laws::snapshot(one).values;
  for (int step = 0; step < 3; ++step) {
    laws::sample_batch<Trainer<1>> const data(std::uint64_t(step) + 7);
    one.step(data.view());
    six.step({data.inputs, data.labels});
    CHECK(laws::same_numbers(laws::snapshot(one).values, laws::snapshot(six).values));
    CHECK(laws::same_numbers(laws::snapshot(one).gradients, laws::snapshot(six).gradients));
  }
  CHECK_FALSE(laws::same_numbers(laws::snapshot(one).values, start));
}
