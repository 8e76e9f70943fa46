// SPDX-License-Identifier: BSL-1.0
//
// Mini-batches that harm a run, and statistics of steps.
#include "catch.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <pipe/checkpoint/checkpoint.hpp>
#include <pipe/metrics/parameter_health.hpp>
#include <pipe/pipe.hpp>
#include <pipe/train/step_guard.hpp>

#include "folder.hpp"

using namespace pp;

namespace {

struct Net : Model<Input<4>, Named<"hidden", Linear<6>>, ReLU, Linear<2>, MSE> {};
using Trainer = Pipeline<Net, Stages<2>, MicroBatches<2>, MicroBatchSize<4>, SGD>;
constexpr std::size_t inputs = 8 * 4, labels = 8 * 2;

/// A regression in which mini-batch 90 has labels out of all proportion, and number 30 none.
Trainer::batch batch(long position) {
  static std::vector<float> x(inputs), y(labels);
  for (std::size_t i = 0; i < inputs; ++i)
    x[i] = float((i * 5 + std::size_t(position) * 3) % 7) / 7;
  for (std::size_t i = 0; i < labels; ++i) {
    y[i] = x[2 * i] - x[2 * i + 1];
    if (position == 90) y[i] = 1e4f;
    if (position == 30) y[i] = std::numeric_limits<float>::quiet_NaN();
  }
  return {x, y};
}

}  // namespace

TEST_CASE("a spike is far above the recent values, and changes nothing about them") {
  spike_detector d(5, 10);
  for (int i = 0; i < 10; ++i) CHECK_FALSE(d.add(1 + 0.1 * (i % 2)));
  for (int i = 0; i < 100; ++i) CHECK(d.add(1.5));
  CHECK_FALSE(d.add(1.2));
  CHECK_FALSE(d.add(-100));  // far below is none
  CHECK(d.add(std::numeric_limits<double>::infinity()));
  spike_detector constant(5, 10);
  for (int i = 0; i < 20; ++i) CHECK_FALSE(constant.add(2));
  CHECK_FALSE(constant.add(2.001));
  CHECK(constant.add(2.2));
  spike_detector falling(8, 20);  // as a loss does
  for (int i = 0; i < 1000; ++i) CHECK_FALSE(falling.add(std::exp(-i / 200.0)));
  CHECK(sentence<data_error>([] { spike_detector(8, 1); }) ==
        "spike_detector: expected a window of at least 2 and times above 0, got 1 and 8");
}

TEST_CASE("a run leaves out what harms it, and ends where a run without it does") {
  temporary_folder const folder;
  std::string const path = folder.file("run");
  long const steps = 120;
  Trainer trainer({.seed = 5, .optimizer = {.learning_rate = 0.05}});
  // [guard]
  step_guard guard;
  for (long position = 0; trainer.steps() < steps;) {
    if (trainer.steps() % 20 == 0) trainer.save(path, position);
    if (guard.leaves_out(position)) {
      ++position;
      continue;
    }
    auto const advice = guard.step(position, [&] { return trainer.step(batch(position)); });
    if (advice == step_guard::advice::rewind)
      position = trainer.load(path).position.number();
    else
      ++position;  // also past a mini-batch that is not finite: the trainer is as it was
  }
  // [/guard]
  CHECK(guard.left_out() == std::set<long>{30, 90});

  Trainer other({.seed = 5, .optimizer = {.learning_rate = 0.05}});
  for (long position = 0; other.steps() < steps; ++position)
    if (position != 30 && position != 90) other.step(batch(position));
  auto const a = trainer.parameters(), b = other.parameters();
  for (std::size_t p = 0; p < a.size(); ++p)
    CHECK(std::equal(a[p].values.begin(), a[p].values.end(), b[p].values.begin()));
}

TEST_CASE("when every mini-batch does harm it is not the data") {
  step_guard guard({.most = 2});
  auto const bad = []() -> step_result { throw not_finite("no number"); };
  CHECK(guard.step(7, bad) == step_guard::advice::leave_out);
  CHECK(guard.step(8, bad) == step_guard::advice::leave_out);
  CHECK(guard.leaves_out(7));
  CHECK_FALSE(guard.leaves_out(9));
  CHECK(
      sentence<error>([&] { guard.step(9, bad); }) ==
      "step_guard: left out 3 harmful mini-batches, more than `most`, 2; the last one, at position "
      "9: no number");
  CHECK_THROWS_AS(guard.step(1, []() -> step_result { throw rank_error("other"); }), rank_error);
}

TEST_CASE("statistics of a step by parameter") {
  Trainer trainer({.seed = 5, .optimizer = {.learning_rate = 0.5}});
  auto weights = trainer.parameters();
  REQUIRE(weights[1].name == "hidden.bias");
  for (std::size_t unit : {1u, 4u}) weights[1].values[unit] = -1000;  // no sample reaches them
  trainer.parameters_changed();
  std::vector<std::vector<float>> before;
  for (auto const& p : weights) before.emplace_back(p.values.begin(), p.values.end());
  // [health]
  auto const health = health_of_step(trainer, [&] { trainer.step(batch(0)); });
  // [/health]
  REQUIRE(health.size() == 4);
  for (std::size_t p = 0; p < 4; ++p) {
    double norm = 0, change = 0;
    for (std::size_t i = 0; i < before[p].size(); ++i) {
      norm += double(before[p][i]) * before[p][i];
      double const moved = double(weights[p].values[i]) - before[p][i];
      change += moved * moved;
    }
    CHECK(health[p].name == weights[p].name);
    CHECK(health[p].norm == Approx(std::sqrt(norm)));
    CHECK(health[p].change == Approx(std::sqrt(change)));
    CHECK(health[p].change == Approx(0.5 * health[p].gradient_norm).epsilon(1e-3));
  }
  CHECK(health[1].update_ratio() == Approx(health[1].change / health[1].norm));
  CHECK((health[0].units == 6 && health[0].idle_units == 2));
  CHECK((health[1].units == 6 && health[1].idle_units == 2));
  CHECK((health[3].units == 2 && health[3].idle_units == 0));

  // Under another cut they are the same, to the bit.
  Pipeline<Net, MicroBatches<2>, MicroBatchSize<4>, SGD> whole(
      {.seed = 5, .optimizer = {.learning_rate = 0.5}});
  auto uncut = whole.parameters();
  for (std::size_t p = 0; p < 4; ++p)
    std::copy(before[p].begin(), before[p].end(), uncut[p].values.begin());
  whole.parameters_changed();
  auto const same = health_of_step(whole, [&] { whole.step(batch(0)); });
  REQUIRE(same.size() == 4);
  for (std::size_t p = 0; p < 4; ++p) {
    CHECK(same[p].name == health[p].name);
    CHECK(same[p].norm == health[p].norm);
    CHECK(same[p].change == health[p].change);
    CHECK(same[p].gradient_norm == health[p].gradient_norm);
    CHECK(same[p].idle_units == health[p].idle_units);
  }
}
