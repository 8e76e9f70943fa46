// SPDX-License-Identifier: BSL-1.0
//
// Learning-rate schedules: warm-up, shape, floor.
#include "catch.hpp"

#include <cmath>
#include <functional>

#include <pipe/optim/learning_rate.hpp>

#include "laws/data.hpp"

using namespace pp;
using namespace pp::detail;

TEST_CASE("the factor rises to 1 and falls to the floor", "[optim]") {
  for (decay_shape const shape : {decay_shape::constant, decay_shape::linear, decay_shape::cosine,
                                  decay_shape::one_minus_sqrt}) {
    learning_rate_schedule const s{.shape = shape, .warm_up = 10, .steps = 110, .floor = 0.1};
    CHECK(s(1) == Approx(0.1));
    CHECK(s(5) == Approx(0.5));
    CHECK(s(10) == 1);
    for (long step = 1; step <= 300; ++step) {
      CHECK(s(step) > 0);
      CHECK(s(step) <= 1);
      if (step >= 10) CHECK(s(step + 1) <= s(step));
    }
    CHECK(s(110) == Approx(shape == decay_shape::constant ? 1 : 0.1));
    CHECK(s(100'000) == s(110));
  }
}

TEST_CASE("half way the shapes are half way down", "[optim]") {
  learning_rate_schedule const linear{
      .shape = decay_shape::linear, .warm_up = 0, .steps = 100, .floor = 0};
  learning_rate_schedule const cosine{
      .shape = decay_shape::cosine, .warm_up = 0, .steps = 100, .floor = 0};
  CHECK(linear(50) == Approx(0.5));
  CHECK(cosine(50) == Approx(0.5));
  CHECK(linear(25) == Approx(0.75));
  CHECK(cosine(25) == Approx(0.5 + 0.25 * std::sqrt(2.0)));
}

TEST_CASE("a schedule without a way down stays at the end", "[optim]") {
  learning_rate_schedule const s{
      .shape = decay_shape::linear, .warm_up = 5, .steps = 5, .floor = 0.2};
  CHECK(s(4) == Approx(0.8));
  CHECK(s(5) == Approx(1));  // law: 1 at the end of the warm-up
  CHECK(s(6) == Approx(0.2));
}

TEST_CASE("warm-up, a plateau, and down", "[optim]") {
  for (decay_shape const shape :
       {decay_shape::linear, decay_shape::cosine, decay_shape::one_minus_sqrt}) {
    learning_rate_schedule const s = warm_up_stable_decay(10, 40, 200, 0.05, shape);
    CHECK(s(1) == Approx(0.1));
    for (long step = 10; step <= 160; ++step) CHECK(s(step) == 1);
    for (long step = 160; step < 200; ++step) CHECK(s(step + 1) < s(step));
    CHECK(s(200) == Approx(0.05));
    CHECK(s(1000) == Approx(0.05));
  }
  learning_rate_schedule const s = warm_up_stable_decay(0, 100, 300);
  CHECK(s(1) == 1);
  CHECK(s(225) == Approx(0.5));  // 1 - sqrt of a quarter
  CHECK(s(300) == 0);
  CHECK(warm_up_stable_decay(10, 200, 100)(10) == 1);  // no room for a plateau
  CHECK(warm_up_stable_decay(10, 200, 100)(11) < 1);
}

TEST_CASE("a trainer takes a schedule, or any function of the step", "[optim]") {
  struct Net : Model<Input<3>, Linear<4>, Tanh, Linear<2>, MSE> {};
  using trainer = Pipeline<Net, Adam, PortableHost>;
  learning_rate_schedule const schedule{
      .shape = decay_shape::linear, .warm_up = 2, .steps = 5, .floor = 0.1};
  trainer scheduled({.optimizer = {.learning_rate = 0.1}, .learning_rate_factor = schedule});
  trainer called({.optimizer = {.learning_rate = 0.1},
                  .learning_rate_factor = [&](long step) { return schedule(step); }});
  trainer by_hand({.optimizer = {.learning_rate = 7}});
  for (long step = 1; step <= 6; ++step) {
    laws::sample_batch<trainer> const data(std::uint64_t(step) + 1);
    CHECK(scheduled.learning_rate() == 0.1 * schedule(step));
    scheduled.step(data.view());
    called.step(data.view());
    by_hand.step(data.view(), 0.1 * schedule(step));
    CHECK(laws::same_numbers(laws::snapshot(scheduled).values, laws::snapshot(by_hand).values));
    CHECK(laws::same_numbers(laws::snapshot(called).values, laws::snapshot(by_hand).values));
  }
  CHECK(trainer({.optimizer = {.learning_rate = 0.3}}).learning_rate() == 0.3);
}

TEST_CASE("a function of the step is kept by value, whatever its type", "[optim]") {
  int calls = 0;
  learning_rate_function const counting = [&calls, own = 0](long step) mutable {
    ++calls;
    return float(step + 10 * ++own);
  };
  CHECK(counting(1) == 11);
  learning_rate_function const copy = counting;
  CHECK(copy(1) == 21);
  CHECK(counting(2) == 22);
  CHECK(calls == 3);
  CHECK(learning_rate_function([](long step) { return 0.5 * double(step); })(3) == 1.5);
}

TEST_CASE("no function of the step counts as none", "[optim]") {
  CHECK_FALSE(learning_rate_function{});
  CHECK_FALSE(learning_rate_function(std::function<double(long)>()));
  CHECK_FALSE(learning_rate_function(static_cast<double (*)(long)>(nullptr)));
  CHECK(learning_rate_function(std::function<double(long)>(learning_rate_schedule{})));
}
