// SPDX-License-Identifier: BSL-1.0
//
// Settings out of range are refused by name, value and range, before anything is trained with them.
#include "catch.hpp"

#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "laws/data.hpp"

using Catch::Matchers::Contains;
using namespace pp;
using namespace pp::detail;

namespace {

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN(),
                 inf = std::numeric_limits<double>::infinity();

/// Every value of `bad` in a copy of the settings is refused by that name, and none of `good`.
template <class Settings, class Number>
void holds(char const* name, Number Settings::* which, std::initializer_list<Number> bad,
           std::initializer_list<Number> good) {
  INFO(name);
  for (Number value : bad) {
    Settings s;
    s.*which = value;
    CHECK_THROWS_WITH(s.check(custom::setting_check("Owner")),
                      Contains(std::string("Owner.") + name + ": expected ") && Contains(", got "));
  }
  for (Number value : good) {
    Settings s;
    s.*which = value;
    CHECK_NOTHROW(s.check(custom::setting_check("Owner")));
  }
}
template <class Settings>
void holds_fraction(char const* name, double Settings::* which) {
  holds(name, which, {not_a_number, inf, -inf, -0.1, 1.0, 2.0}, {0.0, 0.5, 0.999999});
}
template <class Settings>
void holds_amount(char const* name, double Settings::* which) {
  holds(name, which, {not_a_number, inf, -inf, -1e-9, 1e31, 1e300}, {0.0, 0.1, 1e6});
}
template <class Settings>
void holds_positive(char const* name, double Settings::* which) {
  holds(name, which, {not_a_number, inf, -inf, -1e-8, 0.0, 1e-60, 1e300}, {1e-30, 1e-8, 1.0});
}
template <class Settings>
void holds_adams() {
  holds_fraction<Settings>("beta1", &Settings::beta1);
  holds_fraction<Settings>("beta2", &Settings::beta2);
  holds_positive<Settings>("epsilon", &Settings::epsilon);
  holds_amount<Settings>("weight_decay", &Settings::weight_decay);
}

template <class Settings>
void holds_rmsprop() {
  holds_fraction<Settings>("alpha", &Settings::alpha);
  holds_positive<Settings>("epsilon", &Settings::epsilon);
  holds_amount<Settings>("weight_decay", &Settings::weight_decay);
  holds_fraction<Settings>("momentum", &Settings::momentum);
}

struct Net : Model<Input<3>, Linear<4>, Tanh, Linear<2>, MSE> {};
using Trainer = Pipeline<Net, AdamW, PortableHost>;
using settings = Trainer::settings;

/// Every call of the trainer is refused with those words, and leaves it as it was.
template <class Call>
void refuses(Trainer& trainer, Call call, std::string const& words) {
  auto const before = laws::snapshot(trainer).values;
  long const steps = trainer.steps();
  int const kept = trainer.accumulated();
  CHECK_THROWS_AS(call(), data_error);
  CHECK_THROWS_WITH(call(), Contains(words));
  CHECK(laws::same_numbers(before, laws::snapshot(trainer).values));
  CHECK(trainer.steps() == steps);
  CHECK(trainer.accumulated() == kept);
}

}  // namespace

TEST_CASE("optimizers say the ranges of their numbers", "[optim]") {
  holds_adams<Adam>();
  holds_adams<AdamW>();
  holds_adams<NAdam>();
  holds_amount<NAdam>("momentum_decay", &NAdam::momentum_decay);
  holds_adams<Adamax>();
  holds_rmsprop<RMSprop>();
  holds_rmsprop<CenteredRMSprop>();
  holds_amount("learning_rate_decay", &Adagrad::learning_rate_decay);
  holds_amount("weight_decay", &Adagrad::weight_decay);
  holds_amount("initial_accumulator_value", &Adagrad::initial_accumulator_value);
  holds_positive("epsilon", &Adagrad::epsilon);
  holds_amount("correction", &ErrorFeedback<Lion>::correction);
  holds_adams<LAMB>();
  holds_fraction("beta1", &Lion::beta1);
  holds_fraction("beta2", &Lion::beta2);
  holds_amount("weight_decay", &Lion::weight_decay);
  holds_fraction("momentum", &SGD::momentum);
  holds_amount("weight_decay", &SGD::weight_decay);
  holds("beta2_decay", &Adafactor::beta2_decay, {not_a_number, -inf, 0.1}, {0.0, -0.8});
  holds_amount("epsilon1", &Adafactor::epsilon1);
  holds_amount("epsilon2", &Adafactor::epsilon2);
  holds_positive("threshold", &Adafactor::threshold);
  holds_amount("weight_decay", &Adafactor::weight_decay);
  holds_fraction("momentum", &Muon::momentum);
  holds_amount("weight_decay", &Muon::weight_decay);
  holds("a", &Muon::a, {not_a_number, inf}, {-3.0});
  holds("b", &Muon::b, {not_a_number, inf}, {-3.0});
  holds("c", &Muon::c, {not_a_number, inf}, {-3.0});
  holds_positive("epsilon", &Muon::epsilon);
  holds("newton_schulz_steps", &Muon::newton_schulz_steps, {-1}, {0, 5});
  CHECK_THROWS_WITH(Muon{.others = {.beta1 = 2}}.check(custom::setting_check("Muon")),
                    "Muon.others.beta1: expected a number in [0, 1), got 2");
  CHECK_THROWS_WITH(
      Muon{.others = {.learning_rate = not_a_number}}.check(custom::setting_check("Muon")),
      Contains("Muon.others.learning_rate: expected a number in [0, 1e30], got nan"));
}

TEST_CASE("a schedule of learning rates says the ranges of its numbers", "[optim]") {
  using schedule = learning_rate_schedule;
  auto const check = [](schedule const& s) {
    learning_rate_function(s).check(custom::setting_check("Owner"));
  };
  CHECK_THROWS_WITH(check({}), "Owner.steps: expected 1 or more, got 0");
  CHECK_THROWS_WITH(check({.warm_up = 100}), "Owner.steps: expected 100 or more, got 0");
  CHECK_THROWS_WITH(check({.warm_up = 10, .stable = 20, .steps = 15}),
                    "Owner.steps - warm_up: expected 20 or more, got 5");
  CHECK_THROWS_WITH(check({.warm_up = -1, .steps = 10}), Contains("Owner.warm_up"));
  CHECK_THROWS_WITH(check({.stable = -1, .steps = 10}), Contains("Owner.stable"));
  for (double const floor : {not_a_number, -0.1, 1.1, inf})
    CHECK_THROWS_WITH(check({.steps = 10, .floor = floor}),
                      Contains("Owner.floor: expected a number in [0, 1], got "));
  CHECK_NOTHROW(check({.steps = 10}));
  CHECK_NOTHROW(check({.shape = decay_shape::constant}));
  CHECK_NOTHROW(check({.shape = decay_shape::linear, .warm_up = 5, .steps = 5, .floor = 0}));
  CHECK_NOTHROW(check(warm_up_stable_decay(10, 40, 200)));
  CHECK_THROWS_AS(check(warm_up_stable_decay(10, -40, 200)), data_error);
  CHECK_NOTHROW(learning_rate_function([](long) { return 1.0; }).check(custom::setting_check()));
}

TEST_CASE("no trainer is made with settings out of range", "[optim]") {
  auto const refused = [](settings const& s, char const* words) {
    CHECK_THROWS_AS(Trainer(s), data_error);
    CHECK_THROWS_WITH(Trainer(s), words);
  };
  refused({.optimizer = {.learning_rate = not_a_number}},
          "AdamW.learning_rate: expected a number in [0, 1e30], got nan");
  refused({.optimizer = {.learning_rate = -1}},
          "AdamW.learning_rate: expected a number in [0, 1e30], got -1");
  refused({.optimizer = {.learning_rate = 1e300}},
          "AdamW.learning_rate: expected a number in [0, 1e30], got 1e+300");
  refused({.optimizer = {.beta1 = 2}}, "AdamW.beta1: expected a number in [0, 1), got 2");
  refused({.optimizer = {.epsilon = 0}},
          "AdamW.epsilon: expected a number in [1e-37, 1e30], got 0");
  refused({.learning_rate_factor = learning_rate_schedule{.warm_up = 10}},
          "learning_rate_factor.steps: expected 10 or more, got 0");
  refused({.clip_value = -1}, "clip_value: expected a number in [0, 1e30], got -1");
  refused({.clip_norm = not_a_number}, "clip_norm: expected a number in [0, 1e30], got nan");
  refused({.clip_norm = inf}, "clip_norm: expected a number in [0, 1e30], got inf");
  Trainer({.optimizer = {.learning_rate = 0}, .clip_value = 1, .clip_norm = 1});
}

TEST_CASE("a step with a learning rate that is none changes nothing", "[optim]") {
  double factor = 1;
  Trainer trainer({.learning_rate_factor = [&](long) { return factor; }});
  laws::sample_batch<Trainer> const data(1);
  trainer.step(data.view());
  trainer.accumulate(data.view());
  for (double const bad : {not_a_number, inf, -inf, -1.0, 1e300}) {
    refuses(
        trainer, [&] { trainer.step(data.view(), bad); },
        "learning_rate: expected a number in [0, 1e30], got ");
    factor = bad;
    refuses(
        trainer, [&] { trainer.step(data.view()); },
        "learning_rate_factor(2): expected a number in [0, 1e30], got ");
    factor = 1;
  }
  CHECK(trainer.accumulated() == 1);
  trainer.step(data.view(), 0);
  CHECK(trainer.steps() == 2);
}
