// SPDX-License-Identifier: BSL-1.0
//
// A step that cannot be right is rejected whole: parameters, optimizer state and step count are as
// if it had never been asked for, so the next steps give the bits of a run that never saw it.
#include "catch.hpp"

#include <cmath>
#include <limits>

#include "runtime/trainers.hpp"

using Catch::Matchers::Predicate;
using namespace pp;

namespace {

auto says(std::string const& text) {
  return Predicate<std::exception>(
      [text](std::exception const& e) {
        return std::string(e.what()).find(text) != std::string::npos;
      },
      "says: " + text);
}

/// Steps of two trainers, one of which is asked for something impossible in between.
template <class Trainer, class Spoil>
void survives(Spoil spoil) {
  Trainer clean, troubled;
  for (int step = 0; step < 3; ++step) {
    laws::sample_batch<Trainer> const data(10 + std::uint64_t(step));
    auto const before = laws::snapshot(troubled).values;
    spoil(troubled, laws::sample_batch<Trainer>(20 + std::uint64_t(step)));
    CHECK(laws::same_numbers(before, laws::snapshot(troubled).values));
    CHECK(troubled.steps() == step);
    auto const a = clean.step(data.view()), b = troubled.step(data.view());
    CHECK(laws::same_bits(a.loss, b.loss));
    CHECK(laws::same_bits(a.gradient_norm, b.gradient_norm));
    CHECK(laws::same_numbers(laws::snapshot(clean).values, laws::snapshot(troubled).values));
  }
}

}  // namespace

TEST_CASE("a number that is not finite rejects the step, which names its place in the batch",
          "[runtime]") {
  // Infinity is finite again after Tanh, and no number of its gradient.
  for (float const bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    survives<tiny::Regression>([&](auto& trainer, auto data) {
      data.inputs[13] = bad;  // of the third micro-batch
      CHECK_THROWS_MATCHES(
          trainer.step(data.view()), not_finite,
          says("step " + std::to_string(trainer.steps() + 1) + " rejected: inputs: ") &&
              says(std::isnan(bad) ? "nan at position 13" : "inf at position 13") &&
              says("(sample " + std::to_string(13 / tiny::Regression::inputs_per_sample) + ")"));
      CHECK(std::isnan(trainer.evaluate(data.view())) == std::isnan(bad));
    });
    survives<tiny::Regression>([&](auto& trainer, auto data) {
      data.labels[0] = bad;
      CHECK_THROWS_MATCHES(trainer.step(data.view()), not_finite,
                           says(" rejected: labels: ") && says("at position 0 (sample 0)"));
    });
  }
}

TEST_CASE("a gradient that is not finite under a finite loss rejects the step", "[runtime]") {
  tiny::Regression trainer;
  auto p = trainer.parameters();
  laws::sample_batch<tiny::Regression> const data(1);
  // Through weights of 1e30 a gradient of ordinary size overflows, while weights of 0 before them
  // keep the loss ordinary.
  for (float& w : p[0].values) w = 0;
  for (float& w : p[1].values) w = 0;
  for (float& w : p[2].values) w = 1e30f;
  for (float& w : p[4].values) w = 1e30f;
  for (auto i : {3u, 5u})
    for (float& w : p[i].values) w = 0;
  trainer.parameters_changed();
  auto const before = laws::snapshot(trainer).values;
  CHECK(std::isfinite(trainer.evaluate(data.view())));
  CHECK_THROWS_MATCHES(trainer.step(data.view()), not_finite,
                       says("backward of micro-batch 0, stage 1, layer 2 (Linear<6>)"));
  CHECK(laws::same_numbers(before, laws::snapshot(trainer).values));
}

TEST_CASE("a parameter that an update has made infinite is named by the next step", "[runtime]") {
  tiny::Regression trainer(
      {.optimizer = {.learning_rate = 1e30}});  // allowed, but not times a gradient of 1e10
  laws::sample_batch<tiny::Regression> data(1);
  for (float& label : data.labels) label = 1e10f;
  trainer.step(data.view());
  std::string expected;
  for (auto const& p : trainer.parameters())
    for (std::size_t i = 0; i < p.values.size() && expected.empty(); ++i)
      if (!std::isfinite(p.values[i]))
        expected = "a parameter of layer " + std::to_string(p.layer) + " (Linear<";
  REQUIRE_FALSE(expected.empty());
  auto const before = laws::snapshot(trainer).values;
  CHECK_THROWS_MATCHES(
      trainer.step(data.view()), not_finite,
      says("step 2 rejected: " + expected) && says("was its learning rate too large?"));
  CHECK(laws::same_numbers(before, laws::snapshot(trainer).values));
  CHECK(trainer.steps() == 1);

  data.inputs[13] = std::numeric_limits<float>::quiet_NaN();  // what is given comes first
  CHECK_THROWS_MATCHES(trainer.step(data.view()), not_finite,
                       says("step 2 rejected: inputs: nan at position 13"));

  tiny::Regression written;
  written.parameters()[3].values[1] = std::numeric_limits<float>::quiet_NaN();
  written.parameters_changed();
  CHECK_THROWS_MATCHES(
      written.step(laws::sample_batch<tiny::Regression>(1).view()), not_finite,
      says("step 1 rejected: a parameter of layer 2 (Linear<") && says("nan at position 1"));
}

TEST_CASE("data that does not fit is refused by name and position", "[runtime]") {
  survives<tiny::SevenRanks>([](auto& trainer, auto data) {
    auto const with = [&](auto& numbers, std::size_t at, int value) {
      int const kept = numbers[at];
      numbers[at] = value;
      return kept;
    };
    int kept = with(data.inputs, 7, 5);
    CHECK_THROWS_MATCHES(trainer.step(data.view()), data_error,
                         says("token 5 at position 7") && says("[-1, 5)"));
    CHECK_THROWS_AS(trainer.evaluate(data.view()), data_error);
    CHECK_THROWS_AS(trainer.gradients(data.view()), data_error);
    with(data.inputs, 7, -2);
    CHECK_THROWS_MATCHES(trainer.step(data.view()), data_error, says("token -2 at position 7"));
    with(data.inputs, 7, kept);
    kept = with(data.labels, 3, 5);
    CHECK_THROWS_MATCHES(trainer.step(data.view()), data_error,
                         says("label 5 at position 3") && says("[-1, 5)"));
    with(data.labels, 3, -2);
    CHECK_THROWS_MATCHES(trainer.step(data.view()), data_error, says("label -2 at position 3"));
    with(data.labels, 3, kept);

    auto const whole = [&] { return tiny::SevenRanks::batch{data.inputs, data.labels}; };
    data.inputs.pop_back();
    CHECK_THROWS_MATCHES(trainer.step(whole()), data_error,
                         says("inputs") && says("1 to 5 samples of 3 numbers, got 14"));
    data.inputs.resize(15);
    data.labels.resize(16);
    CHECK_THROWS_MATCHES(trainer.step(whole()), data_error,
                         says("labels") && says("15 numbers, got 16"));
    CHECK_THROWS_MATCHES(trainer.step({}), data_error, says("got 0"));
    std::vector<float> outputs(74);
    CHECK_THROWS_MATCHES(trainer.forward(data.inputs, outputs), data_error,
                         says("outputs") && says("75 numbers, got 74"));
  });
}

TEST_CASE("lists may be written in place, as an address and a size", "[runtime]") {
  using Trainer = tiny::Regression;
  laws::sample_batch<Trainer> const data(1);
  std::vector<float> const& in = data.inputs;
  auto const& labels = data.labels;
  Trainer a, b;
  for (int i = 0; i < 2; ++i)
    CHECK(laws::same_bits(a.step({{in.data(), in.size()}, {labels.data(), labels.size()}}).loss,
                          b.step(data.view()).loss));
  CHECK(laws::same_bits(a.evaluate({{in.data(), in.size()}, {labels.data(), labels.size()}}),
                        b.evaluate({in, labels})));
  std::vector<float> whole(std::size_t(Trainer::samples * Trainer::outputs_per_sample)),
      parts(whole);
  a.forward({in.data(), in.size()}, {parts.data(), parts.size()});
  b.forward(in, whole);
  CHECK(laws::same_numbers(whole, parts));
}

TEST_CASE("a mini-batch without a single label is no step", "[runtime]") {
  survives<tiny::SevenRanks>([](auto& trainer, auto data) {
    for (int& label : data.labels) label = -1;
    auto const result = trainer.gradients(data.view());
    CHECK(std::isnan(result.loss));
    CHECK(result.gradient_norm == 0);
    CHECK_THROWS_AS(trainer.step(data.view()), data_error);
  });
}

namespace {

struct Weighted : Model<Input<3>, Linear<2>, With<CrossEntropy, Weights<"weight">>> {};

}  // namespace

TEST_CASE("weights are finite and not negative, and as many as rows", "[runtime]") {
  using trainer = Pipeline<Weighted, PortableHost, MicroBatches<2>, MicroBatchSize<2>>;
  for (float const bad :
       {-1.0f, std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()})
    survives<trainer>([&](auto& t, auto data) {
      data.numbers[1][2] = bad;
      CHECK_THROWS_MATCHES(
          t.step(data.view()), data_error,
          says("weight ") && says(" at position 2 is not a finite number of 0 or more"));
      CHECK_THROWS_AS(t.evaluate(data.view()), data_error);
      std::vector<float> outputs(8);
      t.forward({.inputs = data.inputs, .labels = {}}, outputs);  // reads no weights
    });
  survives<trainer>([&](auto& t, auto data) {
    auto b = data.view();
    b.template set<"weight">(std::span(data.numbers[1]).first(3));
    CHECK_THROWS_MATCHES(t.step(b), data_error,
                         says("input \"weight\": expected 4 numbers, got 3"));
  });
  survives<trainer>([&](auto& t, auto data) {  // nothing counts: no loss, and no gradient
    data.numbers[1].assign(4, 0);
    CHECK(t.gradients(data.view()).gradient_norm == 0);
    CHECK(std::isnan(t.gradients(data.view()).loss));
    CHECK(std::isnan(t.evaluate(data.view())));
    CHECK_THROWS_MATCHES(t.step(data.view()), data_error,
                         says("labels: none of this step counts, so it has no loss: leave its "
                              "mini-batch out"));
  });
}
