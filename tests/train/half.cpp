// SPDX-License-Identifier: BSL-1.0
//
// The 16-bit types against what they are defined by: each of their values, and the nearest one for
// what lies between.
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "catch.hpp"

#include <pipe/base/half.hpp>

namespace {

using bits16 = std::uint16_t;

/// The value by the standard's own words: (-1)^sign 2^(exponent - bias) (1 + fraction).
double by_definition(bits16 bits, int fraction_bits, int bias) {
  int const exponent = bits >> fraction_bits & ((1 << (15 - fraction_bits)) - 1),
            most = (1 << (15 - fraction_bits)) - 1;
  double const fraction = std::ldexp(bits & ((1 << fraction_bits) - 1), -fraction_bits);
  double const sign = bits & 0x8000 ? -1 : 1;
  if (exponent == most)
    return fraction != 0 ? std::nan("") : sign * std::numeric_limits<double>::infinity();
  return sign * (exponent == 0 ? std::ldexp(fraction, 1 - bias)
                               : std::ldexp(1 + fraction, exponent - bias));
}

bool same(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
}

/// Between each two neighbours: below the middle, on it (to the even one) and above it, from a
/// double in one rounding.
template <class From, class To>
int misrounded(From from_bits, To to_bits) {
  int wrong = 0;
  for (unsigned b = 0; std::isfinite(from_bits(bits16(b + 1))); ++b) {
    double const low = double(from_bits(bits16(b))), high = double(from_bits(bits16(b + 1))),
                 middle = (low + high) / 2;
    auto const is = [&](double x, unsigned expected) {
      wrong += to_bits(pp::detail::float_rounded_to_odd(x)) != expected;
      wrong += to_bits(pp::detail::float_rounded_to_odd(-x)) != (expected | 0x8000);
    };
    is(middle, b % 2 == 0 ? b : b + 1);
    is(std::nextafter(middle, 0), b);
    is(std::nextafter(middle, 1e300), b + 1);
    is(low + (high - low) / 4, b);
    is(high - (high - low) / 4, b + 1);
  }
  return wrong;
}

}  // namespace

TEST_CASE("every F16 and BF16 is the number it stands for, and comes back as the same bits") {
  int wrong = 0;
  for (unsigned b = 0; b < 65536; ++b) {
    wrong += !same(double(pp::detail::float_from_f16(bits16(b))), by_definition(bits16(b), 10, 15));
    wrong +=
        !same(double(pp::detail::float_from_bf16(bits16(b))), by_definition(bits16(b), 7, 127));
    wrong += pp::detail::f16_from_float(pp::detail::float_from_f16(bits16(b))) != b;
    wrong += pp::detail::bf16_from_float(pp::detail::float_from_bf16(bits16(b))) != b;
  }
  CHECK(wrong == 0);
}

TEST_CASE("rounding to F16 and BF16 is to the nearest, ties to even, from a double too") {
  CHECK(misrounded(pp::detail::float_from_f16, pp::detail::f16_from_float) == 0);
  CHECK(misrounded(pp::detail::float_from_bf16, pp::detail::bf16_from_float) == 0);
}

TEST_CASE("what is too large becomes infinite, what is no number stays none") {
  CHECK(pp::detail::f16_from_float(65519.996f) == 0x7BFF);
  CHECK(pp::detail::f16_from_float(65520) == 0x7C00);
  CHECK(pp::detail::f16_from_float(-1e30f) == 0xFC00);
  CHECK(pp::detail::bf16_from_float(std::numeric_limits<float>::max()) == 0x7F80);
  CHECK(pp::detail::f16_from_float(1e-30f) == 0);
  for (std::uint32_t const bits : {0x7F800001u, 0x7FC00000u, 0xFF800001u, 0x7F80FFFFu}) {
    CHECK(std::isnan(
        pp::detail::float_from_f16(pp::detail::f16_from_float(std::bit_cast<float>(bits)))));
    CHECK(std::isnan(
        pp::detail::float_from_bf16(pp::detail::bf16_from_float(std::bit_cast<float>(bits)))));
  }
}
