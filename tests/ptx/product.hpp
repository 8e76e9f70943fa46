// SPDX-License-Identifier: BSL-1.0
//
// How a tensor core of Hopper adds: see add_product.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

namespace ptx {

/// The exponent of the number's format, whose smallest is `least`; that of 0 is no matter.
inline int exponent_of(float x, int least) {
  int const e = int(std::bit_cast<std::uint32_t>(x) >> 23 & 0xff) - 127;
  return std::max(e, least);
}

/// 2^n for -1022 <= n <= 1023.
inline double power_of_two(int n) { return std::bit_cast<double>(std::uint64_t(n + 1023) << 52); }

/// The float next to x towards zero, or x; beyond the largest, infinity.
inline float towards_zero(double x) {
  float const f = float(x);
  if (std::fabs(x) >= 0x1p128) return f;
  return std::fabs(double(f)) > std::fabs(x) ? std::nextafter(f, 0.0f) : f;
}

/// c[16, 8] += a[16, Depth] b[Depth, 8] for factors whose smallest exponent is Least.
///
/// The products are exact. They and the accumulator are aligned to the largest of their exponents, a product's being the sum of its factors',
/// cut after 25 binary places, added exactly, and the sum is cut to a float. NaN is the canonical one. Source: Xie et al., "MMA-Sim:
/// bit-accurate reference model of tensor cores and matrix cores", arXiv 2511.10909, 2025, for mma of Hopper; so Khattak and Mikaitis,
/// "Accurate models of NVIDIA tensor cores", arXiv 2512.07004, 2025.
template <int Depth, int Least>
void add_product(float (&c)[16][8], float const (&a)[16][Depth], float const (&b)[Depth][8]) {
  constexpr int places = 25;
  int of_a[16][Depth], of_b[Depth][8];
  for (int m = 0; m < 16; ++m)
    for (int k = 0; k < Depth; ++k) of_a[m][k] = exponent_of(a[m][k], Least);
  for (int k = 0; k < Depth; ++k)
    for (int n = 0; n < 8; ++n) of_b[k][n] = exponent_of(b[k][n], Least);
  for (int m = 0; m < 16; ++m)
    for (int n = 0; n < 8; ++n) {
      double product[Depth + 1];
      int largest = -1000;
      double plain = 0;  // tells what is not finite
      for (int k = 0; k < Depth; ++k) {
        product[k] = double(a[m][k]) * double(b[k][n]);
        plain += product[k];
        if (product[k] != 0) largest = std::max(largest, of_a[m][k] + of_b[k][n]);
      }
      product[Depth] = double(c[m][n]);
      plain += product[Depth];
      if (product[Depth] != 0) largest = std::max(largest, exponent_of(c[m][n], -126));
      if (!std::isfinite(plain)) {
        c[m][n] = std::isnan(plain) ? std::bit_cast<float>(0x7fffffffu) : float(plain);
        continue;
      }
      if (largest == -1000) {
        c[m][n] = 0;
        continue;
      }
      double const up = power_of_two(places - largest), down = power_of_two(largest - places);
      std::int64_t sum = 0;
      for (double const p : product) sum += std::int64_t(p * up);  // a conversion cuts
      c[m][n] = towards_zero(double(sum) * down);
    }
}

}  // namespace ptx
