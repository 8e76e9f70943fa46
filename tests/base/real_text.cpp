// SPDX-License-Identifier: BSL-1.0
#include "catch.hpp"

#include <bit>
#include <clocale>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

#include <pipe/base/real_text.hpp>

using pp::detail::read_real, pp::detail::real_text;

namespace {

/// Numbers of every magnitude, and those that are none.
std::vector<double> some_numbers() {
  using limits = std::numeric_limits<double>;
  std::vector<double> all{0.0,
                          -0.0,
                          0.1,
                          -1.5,
                          1.0 / 3,
                          0.5,
                          2.5,
                          1e15,
                          1e16,
                          123456,
                          99.995,
                          0.0001,
                          1e-5,
                          limits::max(),
                          limits::min(),
                          limits::denorm_min(),
                          limits::infinity(),
                          -limits::infinity(),
                          limits::quiet_NaN()};
  std::uint64_t bits = 1;
  for (int i = 0; i < 2000; ++i) {
    bits = bits * 6364136223846793005u + 1442695040888963407u;
    double const x = std::bit_cast<double>(bits);
    all.push_back(x);
    all.push_back(std::ldexp(double(bits >> 40), int(bits % 64) - 40));
  }
  return all;
}

/// What printf writes in the C locale.
std::string printed(char const* format, int digits, double x) {
  std::string const before = std::setlocale(LC_ALL, nullptr);
  std::setlocale(LC_ALL, "C");
  char text[400];
  std::snprintf(text, sizeof text, format, digits, x);
  std::setlocale(LC_ALL, before.c_str());
  return text;
}

}  // namespace

TEST_CASE("real numbers are printf's of the C locale", "[base]") {
  int wrong = 0;
  for (double const x : some_numbers())
    for (int const digits : {0, 1, 2, 3, 4, 6, 9, 17}) {
      wrong += std::string(real_text(x, digits)) != printed("%.*g", digits, x);
      wrong +=
          std::string(real_text(x, digits, std::chars_format::fixed)) != printed("%.*f", digits, x);
      wrong += std::string(real_text(x, digits, std::chars_format::scientific)) !=
               printed("%.*e", digits, x);
    }
  CHECK(wrong == 0);
}

TEST_CASE("a real number is read as it was written, a text that is none is not", "[base]") {
  int wrong = 0;
  for (double const x : some_numbers()) {
    double read = 0;
    wrong += !read_real(real_text(x, 17), read);
    wrong += std::isnan(x) ? !std::isnan(read) : read != x;
  }
  CHECK(wrong == 0);
  double x = 7;
  for (char const* const text : {"", " 1", "1 ", "1,5", "+1", "1.5x", "x", "1e999", "1e-999"})
    CHECK_FALSE(read_real(text, x));
  CHECK(x == 7);
}
