// SPDX-License-Identifier: BSL-1.0
//
// The two 16-bit floating-point types of files, as bits: IEEE 754 binary16 (F16) and the upper half of a binary32 (BF16).
// Every value of theirs is a float; the way back rounds to the nearest, ties to even.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace pp {

/// law: exact
constexpr float float_from_bf16(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t(bits) << 16); }

/// law: exact
constexpr float float_from_f16(std::uint16_t bits) {
  std::uint32_t const sign = std::uint32_t(bits & 0x8000) << 16, exponent = bits >> 10 & 0x1F, fraction = bits & 0x3FF;
  if (exponent == 0) {  // zero, or subnormal: a multiple of 2^-24
    float const magnitude = float(fraction) * 0x1p-24f;
    return sign ? -magnitude : magnitude;
  }
  std::uint32_t const wide = exponent == 31 ? 0xFF : exponent + 127 - 15;
  return std::bit_cast<float>(sign | wide << 23 | fraction << 13);
}

/// law: bf16_from_float(float_from_bf16(b)) == b for all b; too large a value becomes infinite
constexpr std::uint16_t bf16_from_float(float value) {
  std::uint32_t const bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7FFFFFFF) > 0x7F800000)  // not a number, and it must stay one when the lower half is cut off
    return std::uint16_t(bits >> 16 | ((bits & 0x7F0000) == 0 ? 1 : 0));
  return std::uint16_t((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

/// law: f16_from_float(float_from_f16(b)) == b for all b; too large a value becomes infinite
constexpr std::uint16_t f16_from_float(float value) {
  std::uint32_t const bits = std::bit_cast<std::uint32_t>(value), magnitude = bits & 0x7FFFFFFF;
  std::uint32_t const sign = bits >> 16 & 0x8000;
  if (magnitude > 0x7F800000) {  // not a number
    std::uint32_t const fraction = magnitude >> 13 & 0x3FF;
    return std::uint16_t(sign | 0x7C00 | (fraction == 0 ? 1 : fraction));
  }
  if (magnitude >= 0x477FF000) return std::uint16_t(sign | 0x7C00);  // from 65520 on: nearer to 2^16 than to 65504
  if (magnitude < 0x38800000) {  // below 2^-14: adding 1/2, whose last bit is worth 2^-24, rounds to multiples of that
    float const rounded = std::bit_cast<float>(magnitude) + 0.5f;
    return std::uint16_t(sign | (std::bit_cast<std::uint32_t>(rounded) - std::bit_cast<std::uint32_t>(0.5f)));
  }
  return std::uint16_t(sign | (magnitude - 0x38000000 + 0xFFF + (magnitude >> 13 & 1)) >> 13);
}

/// A float from which rounding to 16 bits gives what rounding `value` itself would: what is cut off leaves an odd last bit.
///
/// source: Boldo and Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms using rounding to odd", 2008
inline float float_rounded_to_odd(double value) {
  float const nearest = float(value);
  if (double(nearest) == value || !std::isfinite(value)) return nearest;
  std::uint32_t bits = std::bit_cast<std::uint32_t>(nearest);
  if (std::fabs(double(nearest)) > std::fabs(value)) --bits;
  return std::bit_cast<float>(bits | 1);
}
inline float float_rounded_to_odd(float value) { return value; }

}  // namespace pp
