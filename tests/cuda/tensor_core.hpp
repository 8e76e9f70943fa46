// SPDX-License-Identifier: BSL-1.0
//
// How tensor cores add, term by term: a second, plain form of the model in ptx/product.hpp, for any
// GPU from sm_80 on. See docs/explanation/gpu_correctness.md.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace tensor_core {

/// What differs between generations.
struct generation {
  int places;         ///< binary places below the largest exponent at which terms are cut
  int bytes_at_once;  ///< of a row of a, in one sum; the rest follow in a second sum onto the
                      ///< first's result
};
/// For compute capability major.x.
inline generation generation_of(int major) {
  return major < 9 ? generation{24, 16} : generation{25, 32};
}

/// The exponent of a number in a format whose smallest is `least`; that of 0 is below all others.
inline int exponent_of(float x, int least) {
  if (x == 0) return std::numeric_limits<int>::min() / 4;
  return std::max(std::ilogb(x), least);
}

/// The float next to x towards zero; infinite from 2^128 on.
inline float cut(double x) {
  if (std::fabs(x) >= 0x1p128) return std::copysign(HUGE_VALF, float(x));
  float const nearest = float(x);
  return std::fabs(double(nearest)) > std::fabs(x) ? std::nextafter(nearest, 0.0f) : nearest;
}

/// c + a[0] b[0] + ... + a[n - 1] b[n - 1], each term cut at the same binary place, then all of
/// them added exactly.
inline float add_products(float c, float const* a, float const* b, int n, int least, int places) {
  int largest = exponent_of(c, -126);
  double plain = c;
  for (int k = 0; k < n; ++k) {
    plain += double(a[k]) * double(b[k]);
    largest = std::max(largest, exponent_of(a[k], least) + exponent_of(b[k], least));
  }
  if (std::isnan(plain)) return std::numeric_limits<float>::quiet_NaN();
  if (std::isinf(plain)) return float(plain);
  if (largest < -1000) return 0;
  auto const in_places = [=](double term) {
    return std::int64_t(std::ldexp(term, places - largest));
  };  // cut to an integer
  std::int64_t sum = in_places(c);
  for (int k = 0; k < n; ++k) sum += in_places(double(a[k]) * double(b[k]));
  return cut(std::ldexp(double(sum), largest - places));
}

/// An element of a product of `depth` terms as an `mma` of that generation computes it. bytes: of
/// an element of a.
inline float element(generation g, float c, float const* a, float const* b, int depth, int bytes,
                     int least) {
  int const each = std::min(depth, g.bytes_at_once / bytes);
  for (int k = 0; k < depth; k += each) c = add_products(c, a + k, b + k, each, least, g.places);
  return c;
}

}  // namespace tensor_core
