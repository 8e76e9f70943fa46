// SPDX-License-Identifier: BSL-1.0
//
// Accuracy of the kernels' elementary functions against the C library in double, in units of
// float's last place, over a geometric sweep of their range; and what they do with NaN, zeros and
// infinities.
#include <algorithm>
#include <cmath>
#include <limits>

#include "catch.hpp"

#include <pipe/base/math.hpp>

#include "laws/worse.hpp"

namespace {

double units_off(float got, double wanted) {
  float const size = std::fabs(static_cast<float>(wanted));
  double const unit =
      static_cast<double>(std::nextafter(size, std::numeric_limits<float>::infinity()) - size);
  return std::fabs(static_cast<double>(got) - wanted) / unit;
}

/// The largest error over +-[low, high]; both signs only if asked.
template <class F, class Reference>
double worst(F f, Reference reference, double low, double high, bool both_signs) {
  double worst_units = 0;
  for (double x = low; x <= high; x *= 1.00007) {
    float const at = static_cast<float>(x);
    worst_units = laws::worse(worst_units, units_off(f(at), reference(static_cast<double>(at))));
    if (both_signs)
      worst_units =
          laws::worse(worst_units, units_off(f(-at), reference(static_cast<double>(-at))));
  }
  return worst_units;
}

}  // namespace

TEST_CASE("elementary functions are accurate to a few units in the last place") {
  CHECK(worst([](float x) { return pp::math::exp(x); }, [](double x) { return std::exp(x); }, 1e-10,
              87, true) < 1.5);
  CHECK(worst([](float x) { return pp::math::exp2(x); }, [](double x) { return std::exp2(x); },
              1e-10, 126, true) < 1.5);
  CHECK(worst([](float x) { return pp::math::tanh(x); }, [](double x) { return std::tanh(x); },
              1e-30, 30, true) < 3);
  CHECK(worst([](float x) { return pp::math::erf(x); }, [](double x) { return std::erf(x); }, 1e-30,
              8, true) < 3.5);
  CHECK(worst([](float x) { return pp::math::log(x); }, [](double x) { return std::log(x); },
              1.2e-38, 3.4e38, false) < 1.5);
  CHECK(worst([](float x) { return pp::math::log1p(x); }, [](double x) { return std::log1p(x); },
              1e-37, 1, false) < 2);
  CHECK(worst([](float x) { return pp::math::expm1(x); }, [](double x) { return std::expm1(x); },
              1e-30, 87, true) < 2);
  CHECK(worst([](float x) { return pp::math::sqrt(x); }, [](double x) { return std::sqrt(x); },
              1.2e-38, 3.4e38, false) < 1);
  CHECK(worst([](float x) { return pp::math::sigmoid(x); },
              [](double x) { return 1 / (1 + std::exp(-x)); }, 1e-9, 87, true) < 3);
}

TEST_CASE("elementary functions at the ends") {
  float const nan = std::numeric_limits<float>::quiet_NaN(),
              infinity = std::numeric_limits<float>::infinity();
  for (float y :
       {pp::math::exp(nan), pp::math::tanh(nan), pp::math::erf(nan), pp::math::log(nan),
        pp::math::sqrt(nan), pp::math::sigmoid(nan), pp::math::log1p(nan), pp::math::expm1(nan)})
    CHECK(std::isnan(y));
  CHECK(std::isnan(pp::math::log(-1.0f)));
  CHECK(pp::math::log(0.0f) == -infinity);
  CHECK(pp::math::log(infinity) == infinity);
  CHECK(pp::math::log(1.0f) == 0.0f);
  CHECK(pp::math::log1p(0.0f) == 0.0f);
  CHECK(pp::math::exp(0.0f) == 1.0f);
  CHECK(pp::math::exp2(0.0f) == 1.0f);
  CHECK(pp::math::exp2(-126.0f) == std::numeric_limits<float>::min());
  CHECK(pp::math::exp2(-infinity) == std::numeric_limits<float>::min());
  CHECK(pp::math::exp2(infinity) > 8e37f);
  CHECK(pp::math::exp(-infinity) < 2e-38f);
  CHECK(pp::math::exp(infinity) > 6e37f);
  CHECK(pp::math::tanh(infinity) == 1.0f);
  CHECK(pp::math::tanh(-20.0f) == -1.0f);
  CHECK(pp::math::erf(infinity) == 1.0f);
  CHECK(pp::math::erf(-5.0f) == -1.0f);
  CHECK(pp::math::sqrt(0.0f) == 0.0f);
  CHECK(std::signbit(pp::math::tanh(-0.0f)));
  CHECK(std::signbit(pp::math::erf(-0.0f)));
}

TEST_CASE("a size with the sign of a number") {
  for (float x : {1.0f, 3e38f, 1e-45f}) {
    CHECK(pp::math::with_sign(0.25f, x) == 0.25f);
    CHECK(pp::math::with_sign(0.25f, -x) == -0.25f);
    CHECK(pp::math::with_sign(0.25, double(-x)) == -0.25);
  }
  CHECK(pp::math::with_sign(0.25f, 0.0f) == 0);
  CHECK(pp::math::with_sign(0.25f, -0.0f) == 0);
  CHECK(pp::math::with_sign(0.25, 0.0) == 0);
}
TEST_CASE("sizes and positive parts are exact") {
  for (float const x : {0.0f, 1e-45f, 0.37f, 3e38f, INFINITY}) {
    CHECK(pp::math::magnitude(-x) == x);
    CHECK(pp::math::magnitude(x) == x);
    CHECK(pp::math::magnitude(double(-x)) == double(x));
    CHECK(pp::math::positive_part(x) == x);
    CHECK(pp::math::positive_part(-x) == 0);
    CHECK(pp::math::positive_part(double(x)) == double(x));
    CHECK(pp::math::positive_part(double(-x)) == 0);
  }
}

TEST_CASE("a clamp keeps what is no number") {
  CHECK(pp::math::clamped(3.0f, 0.5f) == 0.5f);
  CHECK(pp::math::clamped(-3.0f, 0.5f) == -0.5f);
  CHECK(pp::math::clamped(-0.25f, 0.5f) == -0.25f);
  CHECK(pp::math::clamped(-3.0, 0.5) == -0.5);
  CHECK(pp::math::clamped(0.25, 0.5) == 0.25);
  CHECK(std::isnan(pp::math::clamped(std::numeric_limits<float>::quiet_NaN(), 0.5f)));
  CHECK(std::isnan(pp::math::clamped(std::numeric_limits<double>::quiet_NaN(), 0.5)));
}

TEST_CASE("in double they are the C library's") {
  CHECK(pp::math::exp(-800.0) == 0.0);
  CHECK(pp::math::exp2(-1070.0) == std::exp2(-1070.0));
  CHECK(pp::math::tanh(0.3) == std::tanh(0.3));
  CHECK(pp::math::erf(0.3) == std::erf(0.3));
  CHECK(pp::math::log(3.0) == std::log(3.0));
  CHECK(pp::math::sqrt(2.0) == std::sqrt(2.0));
  CHECK(pp::math::expm1(0.3) == std::expm1(0.3));
  CHECK(pp::math::log1p(0.3) == std::log1p(0.3));
}
