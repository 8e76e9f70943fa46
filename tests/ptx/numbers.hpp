// SPDX-License-Identifier: BSL-1.0
//
// The short formats of tensor cores. Written from their definitions, not from the library's: they
// are an oracle for it.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace ptx {

inline float float_of_bf16(std::uint16_t a) { return std::bit_cast<float>(std::uint32_t(a) << 16); }

inline float float_of_half(std::uint16_t a) {
  int const exponent = a >> 10 & 31, fraction = a & 1023;
  float const sign = (a & 0x8000) != 0 ? -1.0f : 1.0f;
  if (exponent == 31) return fraction != 0 ? std::bit_cast<float>(0x7fffffffu) : sign * HUGE_VALF;
  return exponent == 0 ? sign * std::ldexp(float(fraction), -24)
                       : sign * std::ldexp(float(1024 + fraction), exponent - 25);
}

/// The bits of a float above the lowest `drop`, rounded to nearest, ties to even.
inline std::uint32_t rounded_to_even(std::uint32_t bits, int drop) {
  return (bits + ((1u << (drop - 1)) - 1) + (bits >> drop & 1)) >> drop;
}
/// NaN is the ISA's canonical one.
inline std::uint16_t bf16_of(float a) {
  return std::isnan(a) ? std::uint16_t(0x7fff)
                       : std::uint16_t(rounded_to_even(std::bit_cast<std::uint32_t>(a), 16));
}

inline std::uint16_t half_of(float a) {
  if (std::isnan(a)) return 0x7fff;
  std::uint16_t const sign = std::signbit(a) ? 0x8000 : 0;
  float const size = std::fabs(a);
  if (size >= 65520.0f) return std::uint16_t(sign | 0x7c00);
  if (size < 0x1p-14f)
    return std::uint16_t(sign | std::uint16_t(std::nearbyint(std::ldexp(double(size), 24))));
  std::uint32_t const bits = rounded_to_even(std::bit_cast<std::uint32_t>(size), 13);
  return std::uint16_t(sign | std::uint16_t(bits - (112u << 10)));
}

/// 10 bits of fraction, ties away from zero, in the upper bits of a float; the lower 13 are 0, and
/// NaN loses what it has there, as in ptxas' code for sm_80 and sm_90: an addition of 0x1000 unless
/// |a| >= infinity or unordered, then a mask.
inline std::uint32_t tf32_of(float a) {
  std::uint32_t const bits = std::bit_cast<std::uint32_t>(a);
  return (std::isfinite(a) ? bits + 0x1000 : bits) & ~0x1fffu;
}

}  // namespace ptx
