// SPDX-License-Identifier: BSL-1.0
//
// The elementary functions of kernels. For float on the host they are the library's own
// polynomials, without branches or calls, so that g++ -O2 vectorises a loop of constant length over
// them; the C library's functions do not vectorise, and its sqrt sets errno. The polynomials were
// fitted for this file (weighted minimax by reweighted least squares). For float on the device,
// exponentials and the quotients made of them are the GPU's own instructions, one or two of them,
// without the branches and calls of CUDA's functions. All others, and all for double, which serves
// gradient checks, are the platform's.
//
// A product and a sum that are rounded once are written as multiply_add; nothing else is contracted
// on the host.
//
// When editing: g++ 12 does not vectorise a loop in which one float comparison directly follows
// another, so every function has at most one symmetric clamp.
#pragma once

#include <pipe/base/config.hpp>
#include <pipe/base/libm.hpp>

namespace pp::math {

/// a * b + c, rounded once: a compiler that may contract has no choice to make, which might differ
/// between two kernels of the same formula.
PIPE_HD PIPE_INLINE float multiply_add(float a, float b, float c) {
#ifdef __CUDA_ARCH__
  return __fmaf_rn(a, b, c);
#else
  return __builtin_fmaf(a, b, c);
#endif
}

/// How the product in a formula is rounded before a number is added to it. A formula serves all
/// instruction sets of the host, is inlined into their kernels, and has it as a template parameter:
/// `exact` is a fused multiply-add, `rounded` is for kernels without that instruction.
enum class product : bool { rounded, exact };

/// a * b + c, the only product and sum that may be one instruction on the host: what a formula does
/// not write this way is rounded twice, whatever the compiler and its options. In device code nvcc
/// decides.
template <product P, class T>
PIPE_HD PIPE_INLINE T multiply_add(T a, T b, T c) {
#ifndef __CUDA_ARCH__
  if constexpr (P == product::exact && sizeof(T) == sizeof(float))
    return __builtin_fmaf(a, b, c);
  else if constexpr (P == product::exact)
    return __builtin_fma(a, b, c);
  else
#endif
    return a * b + c;
}

/// The bits of a float as an unsigned integer, and back.
PIPE_HD PIPE_INLINE unsigned bits(float x) { return __builtin_bit_cast(unsigned, x); }
PIPE_HD PIPE_INLINE float from_bits(unsigned x) { return __builtin_bit_cast(float, x); }

/// All ones if the highest bit is set, else 0.
PIPE_HD PIPE_INLINE unsigned sign_mask(unsigned x) {
  return static_cast<unsigned>(static_cast<int>(x) >> 31);
}

/// min(|x|, limit); NaN stays NaN. An integer minimum, since g++ turns a comparison of floats into
/// a branch to the whole function's value at `limit`.
PIPE_HD PIPE_INLINE float clamped_magnitude(float x, float limit) {
  int const size = static_cast<int>(bits(x) & 0x7fffffffu), most = static_cast<int>(bits(limit));
  return from_bits(static_cast<unsigned>(size < most ? size : most) |
                   sign_mask(0x7f800000u - static_cast<unsigned>(size)));
}

/// x clamped to [-limit, limit]; NaN stays NaN.
PIPE_HD PIPE_INLINE float clamped(float x, float limit) {
  return __builtin_copysignf(clamped_magnitude(x, limit), x);
}
PIPE_HD PIPE_INLINE double clamped(double x, double limit) {
  return x > limit ? limit : x < -limit ? -limit : x;
}

/// 1.5 * 2^23 + 127. Adding it to n in [-126, 127] rounds n to an integer and leaves the biased
/// exponent of 2^n in the low bits.
inline constexpr float integer_shift = 12583039.0f;
/// 2^n, from n + integer_shift.
PIPE_HD PIPE_INLINE float power_of_two(float shifted) { return from_bits(bits(shifted) << 23); }

/// e^x = power * (1 + rest), with power = 2^round(x / log 2) and a relative error of `rest` below
/// 2^-24. needs: |x| <= 88
struct split_exp {
  float power, rest;
};

template <product P>
PIPE_HD PIPE_INLINE split_exp exp_parts(float x) {
  float const shifted = multiply_add<P>(x, 1.4426950409f, integer_shift);
  float const n = shifted - integer_shift;
  float const r = multiply_add<P>(n, 2.1219444006e-4f, multiply_add<P>(n, -0.693359375f, x));
  float p = 1.381683948e-3f;
  p = multiply_add<P>(p, r, 8.368762146e-3f);
  p = multiply_add<P>(p, r, 4.166835811e-2f);
  p = multiply_add<P>(p, r, 0.1666652025f);
  p = multiply_add<P>(p, r, 0.499999935f);
  return split_exp{power_of_two(shifted), multiply_add<P>(p, r * r, r)};
}

/// e^x - 1 without cancellation near 0. needs: |x| <= 88
template <product P>
PIPE_HD PIPE_INLINE float expm1_parts(float x) {
  split_exp const e = exp_parts<P>(x);
  return multiply_add<P>(e.power, e.rest, e.power - 1.0f);
}

#ifdef __CUDA_ARCH__
/// 2^x with a relative error of 2^-22; 0 below 2^-126, infinity above the largest float.
///
/// source: PTX ISA, ex2.approx.ftz.f32
PIPE_HD PIPE_INLINE float device_exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
/// 1 / x with a relative error of 2^-23; 0 where |x| > 2^126, infinite where |x| < 2^-126.
///
/// source: PTX ISA, rcp.approx.ftz.f32
PIPE_HD PIPE_INLINE float device_reciprocal(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
#endif

/// e^x. On the host within 2 units in the last place for |x| <= 87; beyond, the argument is
/// clamped: the result is e^87 or e^-87 (1.6e-38), never 0 or infinity. On the device with a
/// relative error of (2 + |x|) 2^-23, about what rounding x once makes; 0 below 2^-126.
template <product P = product::exact, class T>
PIPE_HD PIPE_INLINE T exp(T x) {
  if constexpr (sizeof(T) == sizeof(float)) {
#ifdef __CUDA_ARCH__
    return device_exp2(x * 1.44269504f);
#else
    split_exp const e = exp_parts<P>(__builtin_copysignf(clamped_magnitude(x, 87.0f), x));
    return multiply_add<P>(e.power, e.rest, e.power);
#endif
  } else {
    return libm::exp(x);
  }
}

/// numerator / denominator: on the host rounded once, on the device with a relative error of 2^-22,
/// and 0 where the denominator is above 2^126. needs: denominator >= 2^-126
template <class T>
PIPE_HD PIPE_INLINE T quotient(T numerator, T denominator) {
#ifdef __CUDA_ARCH__
  if constexpr (sizeof(T) == sizeof(float)) return numerator * device_reciprocal(denominator);
#endif
  return numerator / denominator;
}

/// 2^x. On the device with a relative error of 2^-22; 0 below 2^-126. On the host within 1.5 units
/// in the last place for |x| <= 126; beyond, the argument is clamped: the result is 2^126 or 2^-126
/// (1.2e-38), never 0 or infinity. NaN gives one of the two as well: a caller must read x in
/// another place of its formula, as propagating NaN costs as much as the polynomial.
///
/// The host's chain of dependent operations is shorter than that of exp(): x splits into an integer
/// and a fraction without rounding, and the polynomial is summed in pairs.
template <product P = product::exact, class T>
PIPE_HD PIPE_INLINE T exp2(T x) {
  if constexpr (sizeof(T) == sizeof(float)) {
#ifdef __CUDA_ARCH__
    return device_exp2(x);
#else
    // A clamp by integer minima: as signed integers the bits of positive floats ascend with their
    // value, and as unsigned ones those of negative floats ascend with their magnitude.
    int const value = static_cast<int>(bits(x)), most = static_cast<int>(bits(126.0f));
    unsigned const below = static_cast<unsigned>(value < most ? value : most),
                   least = bits(-126.0f);
    float const at = from_bits(below < least ? below : least);
    float const shifted = at + integer_shift, f = at - (shifted - integer_shift), square = f * f;
    float const high = multiply_add<P>(1.53293324e-4f, f, 1.33909716e-3f);
    float const middle = multiply_add<P>(9.61849932e-3f, f, 5.55035956e-2f);
    float const low = multiply_add<P>(0.240226477f, f, 0.693147182f);
    float const upper = multiply_add<P>(square, multiply_add<P>(square, high, middle), low);
    return power_of_two(shifted) * multiply_add<P>(f, upper, 1.0f);
#endif
  } else {
    return libm::exp2(x);
  }
}

/// e^x - 1 within 2 units in the last place for |x| <= 87, also near 0; beyond, the argument is
/// clamped on the host.
template <product P = product::exact, class T>
PIPE_HD PIPE_INLINE T expm1(T x) {
#ifndef __CUDA_ARCH__
  if constexpr (sizeof(T) == sizeof(float))
    return expm1_parts<P>(clamped(x, 87.0f));
  else
#endif
    return libm::expm1(x);
}

/// 1 / (1 + e^-x). On the host within 3 units in the last place for |x| <= 87; on the device with a
/// relative error of (5 + |x|) 2^-23 for x >= -87, and 0 below.
template <product P = product::exact, class T>
PIPE_HD PIPE_INLINE T sigmoid(T x) {
  return math::quotient(T(1), T(1) + math::exp<P>(-x));
}

/// tanh x within 3 units in the last place, also near 0.
template <product P = product::exact, class T>
PIPE_HD PIPE_INLINE T tanh(T x) {
#ifndef __CUDA_ARCH__
  if constexpr (sizeof(T) == sizeof(float)) {
    float const e = expm1_parts<P>(2.0f * clamped_magnitude(x, 10.0f));
    return __builtin_copysignf(e / (e + 2.0f), x);
  } else
#endif
    return libm::tanh(x);
}

/// The error function within 3.5 units in the last place, also near 0: 1 - e^-g(|x|), where
/// g = -log(erfc) is nearly a parabola.
template <product P = product::exact, class T>
PIPE_HD PIPE_INLINE T erf(T x) {
#ifndef __CUDA_ARCH__
  if constexpr (sizeof(T) == sizeof(float)) {
    float const a = clamped_magnitude(x, 3.93f);
    float g = -9.24647584e-6f;
    g = multiply_add<P>(g, a, 1.175639771e-4f);
    g = multiply_add<P>(g, a, -6.326070806e-4f);
    g = multiply_add<P>(g, a, 1.666707258e-3f);
    g = multiply_add<P>(g, a, -1.601872074e-4f);
    g = multiply_add<P>(g, a, -1.915311485e-2f);
    g = multiply_add<P>(g, a, 0.1027778298f);
    g = multiply_add<P>(g, a, 0.6366193826f);
    g = multiply_add<P>(g, a, 1.128379172f);
    return __builtin_copysignf(expm1_parts<P>(-(g * a)), x);
  } else
#endif
    return libm::erf(x);
}

/// The natural logarithm within 2 units in the last place for normal x > 0. +0 and positive
/// subnormal x give -infinity; any x with its sign bit set gives NaN.
template <product P = product::exact, class T>
PIPE_HD PIPE_INLINE T log(T x) {
#ifndef __CUDA_ARCH__
  if constexpr (sizeof(T) == sizeof(float)) {
    // x = 2^n * (1 + f) with 1 + f in [sqrt(1/2), sqrt(2))
    unsigned const from_root = bits(x) - 0x3f3504f3u;
    float const n = static_cast<float>(static_cast<int>(from_root) >> 23);
    float const f = from_bits((from_root & 0x007fffffu) + 0x3f3504f3u) - 1.0f;
    float p = 6.746468625e-2f;
    p = multiply_add<P>(p, f, -0.1167621805f);
    p = multiply_add<P>(p, f, 0.1188856162f);
    p = multiply_add<P>(p, f, -0.1240552281f);
    p = multiply_add<P>(p, f, 0.1421948912f);
    p = multiply_add<P>(p, f, -0.166679969f);
    p = multiply_add<P>(p, f, 0.2000212153f);
    p = multiply_add<P>(p, f, -0.2500000963f);
    p = multiply_add<P>(p, f, 0.3333331257f);
    float const square = f * f;
    float const correction =
        multiply_add<P>(-0.5f, square, multiply_add<P>(p, square * f, n * -2.1219444006e-4f));
    float const result = multiply_add<P>(n, 0.693359375f, correction + f);
    // The special cases by masks of sign bits, since comparisons would not vectorise here: below
    // the smallest normal number counts as 0; infinity stays; NaN, and any set sign bit, make the
    // result all ones (NaN).
    unsigned const x_bits = bits(x), zero = sign_mask(x_bits - 0x00800000u),
                   endless = sign_mask(0x7f7fffffu - x_bits);
    unsigned const nan = sign_mask(x_bits) | sign_mask(0x7f800000u - x_bits);
    return from_bits((bits(result) & ~(zero | endless)) | (0xff800000u & zero) |
                     (0x7f800000u & endless) | nan);
  } else
#endif
    return libm::log(x);
}

/// log(1 + x) within 2 units in the last place, also near 0. Computed as 2 artanh(x / (x + 2)) by
/// its power series. needs: 0 <= x <= 1
template <product P = product::exact, class T>
PIPE_HD PIPE_INLINE T log1p(T x) {
#ifndef __CUDA_ARCH__
  if constexpr (sizeof(T) == sizeof(float)) {
    float const t = x / (x + 2.0f), square = t * t;
    float p = 1.0f / 17;
    p = multiply_add<P>(p, square, 1.0f / 15);
    p = multiply_add<P>(p, square, 1.0f / 13);
    p = multiply_add<P>(p, square, 1.0f / 11);
    p = multiply_add<P>(p, square, 1.0f / 9);
    p = multiply_add<P>(p, square, 1.0f / 7);
    p = multiply_add<P>(p, square, 1.0f / 5);
    p = multiply_add<P>(p, square, 1.0f / 3);
    return 2.0f * multiply_add<P>(t, square * p, t);
  } else
#endif
    return libm::log1p(x);
}
/// size * sign(x), 0 for x = 0; needs: size >= 0. For float by bits, as a comparison that selects
/// does not vectorise.
PIPE_HD PIPE_INLINE float with_sign(float size, float x) {
  unsigned const magnitude = bits(x) & 0x7fffffffu;
  return from_bits((bits(size) & sign_mask(0u - magnitude)) | (bits(x) ^ magnitude));
}
PIPE_HD PIPE_INLINE double with_sign(double size, double x) {
  return x == 0 ? 0 : __builtin_copysign(size, x);
}

/// |x|.
PIPE_HD PIPE_INLINE float magnitude(float x) { return from_bits(bits(x) & 0x7fffffffu); }
PIPE_HD PIPE_INLINE double magnitude(double x) { return x < 0 ? -x : x; }

/// x where x > 0, else 0. For float by bits, as with_sign.
PIPE_HD PIPE_INLINE float positive_part(float x) {
  return from_bits(bits(x) & ~sign_mask(bits(x)));
}
PIPE_HD PIPE_INLINE double positive_part(double x) { return x > 0 ? x : 0; }

/// 1 / sqrt(x) to five digits: two of Newton's iterations from an estimate that halves the
/// exponent.
template <product P>
PIPE_HD PIPE_INLINE float coarse_rsqrt(float x) {
  float const half = 0.5f * x;
  float y = from_bits(0x5f3759dfu - (bits(x) >> 1));
  y = y * multiply_add<P>(-(half * y), y, 1.5f);
  return y * multiply_add<P>(-(half * y), y, 1.5f);
}

/// The square root; 0 gives 0. For float within 1 unit in the last place for normal x > 0.
template <product P = product::exact, class T>
PIPE_HD PIPE_INLINE T sqrt(T x) {
#ifndef __CUDA_ARCH__
  if constexpr (sizeof(T) == sizeof(float)) {
    float const r = coarse_rsqrt<P>(x), root = x * r;
    return multiply_add<P>(0.5f * r, multiply_add<P>(-root, root, x), root);
  } else
#endif
    return libm::sqrt(x);
}

}  // namespace pp::math
