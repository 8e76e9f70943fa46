// SPDX-License-Identifier: BSL-1.0
//
// Learning-rate schedules: warm-up, shape, floor.
#include <catch2/catch.hpp>

#include <pipe/optim/learning_rate.hpp>

using namespace pp;

TEST_CASE("the factor rises to 1 and falls to the floor", "[optim]") {
  for (decay_shape const shape : {decay_shape::constant, decay_shape::linear, decay_shape::cosine}) {
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
  learning_rate_schedule const linear{.shape = decay_shape::linear, .warm_up = 0, .steps = 100, .floor = 0};
  learning_rate_schedule const cosine{.shape = decay_shape::cosine, .warm_up = 0, .steps = 100, .floor = 0};
  CHECK(linear(50) == Approx(0.5));
  CHECK(cosine(50) == Approx(0.5));
  CHECK(linear(25) == Approx(0.75));
  CHECK(cosine(25) == Approx(0.5 + 0.25 * std::sqrt(2.0)));
}

TEST_CASE("a schedule without a way down stays at the end", "[optim]") {
  learning_rate_schedule const s{.shape = decay_shape::linear, .warm_up = 5, .steps = 5, .floor = 0.2};
  CHECK(s(4) == Approx(0.8));
  CHECK(s(5) == Approx(1));  // law: 1 at the end of the warm-up
  CHECK(s(6) == Approx(0.2));
}
