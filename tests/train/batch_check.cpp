// SPDX-License-Identifier: BSL-1.0
//
// The first value that does not fit is found wherever it is: in a block, after the last whole one,
// or nowhere.
#include <limits>
#include <vector>

#include "catch.hpp"

#include <pipe/data/batch_check.hpp>

#include "message_of.hpp"

using namespace pp;
using namespace pp::detail;

TEST_CASE("the first that does not fit, at every position", "[batch_check]") {
  auto const fits = [](int value) { return value == 0; };
  for (int n = 0; n < 200; ++n) {
    std::vector<int> values(std::size_t(n), 0);
    REQUIRE(first_that_does_not_fit(values.data(), n, fits) == n);
    for (int first = n - 1; first >= 0; --first) {
      values[std::size_t(first)] = 1;  // those after it stay
      REQUIRE(first_that_does_not_fit(values.data(), n, fits) == first);
    }
  }
}

TEST_CASE("ids and weights name the value and its position", "[batch_check]") {
  std::vector<int> ids(130, 6);
  ids[129] = 7;
  CHECK_NOTHROW(check_ids("token", ids, -1, 8));
  CHECK(message_of([&] { check_ids("token", ids, -1, 7); }) ==
        "token 7 at position 129 is not in [-1, 7)");
  std::vector<float> weights(70, 0);
  weights[65] = -1;
  CHECK(message_of([&] { check_weights(std::span<float const>(weights)); }) ==
        "weight -1 at position 65 is not a finite number of 0 or more");
  for (float const wrong :
       {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    weights[65] = wrong;
    CHECK_THROWS_AS(check_weights(std::span<float const>(weights)), data_error);
  }
}
