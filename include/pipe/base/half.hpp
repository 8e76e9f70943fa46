// SPDX-License-Identifier: BSL-1.0
//
// The two 16-bit floating-point types: IEEE 754 binary16 (F16) and the upper half of a binary32
// (BF16), as bits and as types of values in memory. Every value of theirs is a float; the
// conversion from float rounds to nearest, ties to even. GPU instructions give the same bits,
// except that they turn every NaN into one and the same.
#pragma once

#include <cstdint>

#include <pipe/base/config.hpp>
#include <pipe/base/libm.hpp>

namespace pp {

namespace detail {

/// The value of a bfloat16. law: exact
PIPE_HD constexpr float float_from_bf16(std::uint16_t bits) {
  return __builtin_bit_cast(float, std::uint32_t(bits) << 16);
}

/// The value of an IEEE binary16, subnormal numbers included. law: exact
PIPE_HD constexpr float float_from_f16(std::uint16_t bits) {
#ifdef __CUDA_ARCH__
  if (!__builtin_is_constant_evaluated()) {
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
  }
#endif
  std::uint32_t const sign = std::uint32_t(bits & 0x8000) << 16, exponent = bits >> 10 & 0x1F,
                      fraction = bits & 0x3FF;
  if (exponent == 0) {  // zero, or subnormal: a multiple of 2^-24
    float const magnitude = float(fraction) * 0x1p-24f;
    return sign ? -magnitude : magnitude;
  }
  std::uint32_t const wide = exponent == 31 ? 0xFF : exponent + 127 - 15;
  return __builtin_bit_cast(float, sign | wide << 23 | fraction << 13);
}

/// A float rounded to bfloat16, to nearest, ties to even.
///
/// law: bf16_from_float(float_from_bf16(b)) == b for all b (on a GPU: all but NaNs); overflow gives
///      infinity; NaN stays NaN
PIPE_HD constexpr std::uint16_t bf16_from_float(float value) {
#ifdef __CUDA_ARCH__
  if (!__builtin_is_constant_evaluated()) {
    std::uint16_t rounded;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(rounded) : "f"(value));
    return rounded;
  }
#endif
  std::uint32_t const bits = __builtin_bit_cast(std::uint32_t, value);
  // A NaN must remain one when its lower half is cut off.
  if ((bits & 0x7FFFFFFF) > 0x7F800000)
    return std::uint16_t(bits >> 16 | ((bits & 0x7F0000) == 0 ? 1 : 0));
  return std::uint16_t((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

/// A float rounded to IEEE binary16, to nearest, ties to even.
///
/// law: f16_from_float(float_from_f16(b)) == b for all b (on a GPU: all but NaNs); overflow gives
///      infinity; NaN stays NaN
PIPE_HD constexpr std::uint16_t f16_from_float(float value) {
#ifdef __CUDA_ARCH__
  if (!__builtin_is_constant_evaluated()) {
    std::uint16_t rounded;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(rounded) : "f"(value));
    return rounded;
  }
#endif
  std::uint32_t const bits = __builtin_bit_cast(std::uint32_t, value),
                      magnitude = bits & 0x7FFFFFFF;
  std::uint32_t const sign = bits >> 16 & 0x8000;
  if (magnitude > 0x7F800000) {  // not a number
    std::uint32_t const fraction = magnitude >> 13 & 0x3FF;
    return std::uint16_t(sign | 0x7C00 | (fraction == 0 ? 1 : fraction));
  }
  // From 65520 on, a value is nearer to 2^16 than to 65504, the largest finite number.
  if (magnitude >= 0x477FF000) return std::uint16_t(sign | 0x7C00);
  // Below 2^-14: adding 1/2, whose last bit is worth 2^-24, rounds to a multiple of 2^-24.
  if (magnitude < 0x38800000) {
    float const rounded = __builtin_bit_cast(float, magnitude) + 0.5f;
    return std::uint16_t(sign | (__builtin_bit_cast(std::uint32_t, rounded) -
                                 __builtin_bit_cast(std::uint32_t, 0.5f)));
  }
  return std::uint16_t(sign | (magnitude - 0x38000000 + 0xFFF + (magnitude >> 13 & 1)) >> 13);
}

}  // namespace detail

/// A bfloat16 number in memory. Explicit conversions only: arithmetic is done in float.
struct bf16 {
  std::uint16_t bits;
  bf16() = default;
  PIPE_HD constexpr explicit bf16(float value) : bits(detail::bf16_from_float(value)) {}
  PIPE_HD constexpr explicit operator float() const { return detail::float_from_bf16(bits); }
};
/// An IEEE binary16 number in memory. Explicit conversions only: arithmetic is done in float.
struct fp16 {
  std::uint16_t bits;
  fp16() = default;
  PIPE_HD constexpr explicit fp16(float value) : bits(detail::f16_from_float(value)) {}
  PIPE_HD constexpr explicit operator float() const { return detail::float_from_f16(bits); }
};

namespace detail {

/// `value` rounded to odd: an inexact result gets an odd last bit. Rounding it further to 16 bits
/// gives the same result as rounding `value` directly, without double rounding.
///
/// source: Boldo and Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms
///         using rounding to odd", 2008
inline float float_rounded_to_odd(double value) {
  float const nearest = float(value);
  if (double(nearest) == value || !libm::isfinite(value)) return nearest;
  std::uint32_t bits = __builtin_bit_cast(std::uint32_t, nearest);
  if (libm::fabs(double(nearest)) > libm::fabs(value)) --bits;
  return __builtin_bit_cast(float, bits | 1);
}
inline float float_rounded_to_odd(float value) { return value; }

}  // namespace detail

}  // namespace pp
