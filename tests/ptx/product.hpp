// SPDX-License-Identifier: BSL-1.0
//
// How a tensor core of Hopper adds: see add_product.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace ptx {

/// Some numbers at once.
inline constexpr int together = 4;
using doubles = double __attribute__((vector_size(8 * together)));
using longs = std::int64_t __attribute__((vector_size(8 * together)));
using ints = std::int32_t __attribute__((vector_size(4 * together)));
using floats = float __attribute__((vector_size(4 * together)));

/// The exponents of numbers in a format whose smallest is `least`; 0 has none that could be the
/// largest.
inline ints exponents_of(floats x, int least) {
  ints const e = (std::bit_cast<ints>(x) >> 23 & 0xff) - 127;
  return x == 0 ? ints{} - 2000 : e < least ? ints{} + least : e;
}
inline floats load_floats(float const* x) {
  floats all;
  std::memcpy(&all, x, sizeof all);
  return all;
}

/// The float next to x towards zero, or x; from 2^128 on infinity.
inline float towards_zero(double x) {
  if (std::fabs(x) < 0x1p-126) return float(std::trunc(x * 0x1p149) * 0x1p-149);
  return float(
      std::bit_cast<double>(std::bit_cast<std::uint64_t>(x) & ~((std::uint64_t(1) << 29) - 1)));
}

/// c[16, 8] += a[16, Depth] b[Depth, 8] for factors whose smallest exponent is Least.
///
/// The products are exact. They and the accumulator are aligned to the largest of their exponents,
/// a product's being the sum of its factors', cut after 25 binary places, added exactly, and the
/// sum is cut to a float. NaN is the canonical one. Source: Xie et al., "MMA-Sim: bit-accurate
/// reference model of tensor cores and matrix cores", arXiv 2511.10909, 2025, and its code (Hopper:
/// F = 25, rho = RZ-FP32, 32 bytes of a row at once), where a zero has no exponent. Earlier GPUs:
/// cuda/tensor_core.hpp.
template <int Depth, int Least>
void add_product(float (&c)[16][8], float const (&a)[16][Depth], float const (&b)[Depth][8]) {
  constexpr int places = 25;
  int of_a[16][Depth];
  for (int m = 0; m < 16; ++m)
    for (int k = 0; k < Depth; ++k) {
      int const e = int(std::bit_cast<std::uint32_t>(a[m][k]) >> 23 & 0xff) - 127;
      of_a[m][k] = a[m][k] == 0 ? -2000 : std::max(e, Least);
    }
  float times_0 = 0;  // 0 unless a number is not finite
  for (auto const& row : a)
    for (float const x : row) times_0 += x * 0;
  for (auto const& row : b)
    for (float const x : row) times_0 += x * 0;
  for (int n = 0; n < 8; n += together) {
    doubles of_b[Depth];
    ints exponents_of_b[Depth], some_of_b{};
    for (int k = 0; k < Depth; ++k) {
      floats const row = load_floats(&b[k][n]);
      of_b[k] = __builtin_convertvector(row, doubles);
      exponents_of_b[k] = exponents_of(row, Least);
      some_of_b |= row != 0;
    }
    bool const is_zero =
        times_0 == 0 && (some_of_b[0] | some_of_b[1] | some_of_b[2] | some_of_b[3]) == 0;
    for (int m = 0; m < 16; ++m) {
      bool row_is_zero = times_0 == 0;
      for (int k = 0; k < Depth; ++k) row_is_zero = row_is_zero && of_a[m][k] == -2000;
      if (is_zero || row_is_zero) {  // as in the padding of tiles: a shorter way to the same
        for (int k = 0; k < together; ++k) {
          float& to = c[m][n + k];
          to = std::isnan(to) ? std::bit_cast<float>(0x7fffffffu) : to + 0.0f;
        }
        continue;
      }
      floats const before = load_floats(&c[m][n]);
      doubles terms[Depth + 1];
      terms[Depth] = __builtin_convertvector(before, doubles);
      doubles plain = terms[Depth];  // tells what is not finite
      ints largest = exponents_of(before, -126);
      for (int k = 0; k < Depth; ++k) {
        terms[k] = double(a[m][k]) * of_b[k];
        plain += terms[k];
        ints const e = of_a[m][k] + exponents_of_b[k];
        largest = e > largest ? e : largest;
      }
      largest = largest > -900 ? largest : ints{} - 900;  // of zeros alone
      auto const up =
          reinterpret_cast<doubles>(__builtin_convertvector(places + 1023 - largest, longs) << 52);
      doubles sum{};
      for (doubles const& t : terms)  // below 2^27 if all are finite; the conversion cuts
        sum += __builtin_convertvector(__builtin_convertvector(t * up, ints), doubles);
      sum /= up;
      for (int k = 0; k < together; ++k) {
        if (std::isfinite(plain[k]))
          c[m][n + k] = towards_zero(sum[k]);
        else
          c[m][n + k] = std::isnan(plain[k]) ? std::bit_cast<float>(0x7fffffffu) : float(plain[k]);
      }
    }
  }
}

}  // namespace ptx
