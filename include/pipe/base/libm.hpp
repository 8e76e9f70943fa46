// SPDX-License-Identifier: BSL-1.0
//
// The platform's elementary functions, those of <cmath>. The header itself also brings the special
// functions of C++17, a tenth of the compile time of a program's headers, and is not included on
// the host.
//
// Bits: sqrt is exact to the last digit everywhere. The others are the C library's, in double:
// glibc's have other last digits on an x86-64 processor without FMA, which shows in one of some
// thousand results. A step calls them for losses, for an optimizer's bias corrections and for
// initial values, not for elements.
#pragma once

#include <pipe/base/config.hpp>

#ifdef __CUDACC__  // nvcc has read <cmath> already, with device functions under the same names
#include <cmath>
#endif

namespace pp::libm {

#ifdef __CUDACC__
using std::copysign;
using std::cos;
using std::erf;
using std::exp;
using std::exp2;
using std::expm1;
using std::fabs;
using std::fmax;
using std::fmin;
using std::log;
using std::log1p;
using std::pow;
using std::sin;
using std::sqrt;
using std::tanh;
#else
PIPE_INLINE float sqrt(float x) { return __builtin_sqrtf(x); }
PIPE_INLINE float fabs(float x) { return __builtin_fabsf(x); }
PIPE_INLINE float copysign(float size, float sign) { return __builtin_copysignf(size, sign); }

PIPE_INLINE double sqrt(double x) { return __builtin_sqrt(x); }
PIPE_INLINE double fabs(double x) { return __builtin_fabs(x); }
PIPE_INLINE double copysign(double size, double sign) { return __builtin_copysign(size, sign); }

PIPE_INLINE double cos(double x) { return __builtin_cos(x); }
PIPE_INLINE double erf(double x) { return __builtin_erf(x); }
PIPE_INLINE double exp(double x) { return __builtin_exp(x); }
PIPE_INLINE double exp2(double x) { return __builtin_exp2(x); }
PIPE_INLINE double expm1(double x) { return __builtin_expm1(x); }
PIPE_INLINE double fmax(double a, double b) { return __builtin_fmax(a, b); }
PIPE_INLINE double fmin(double a, double b) { return __builtin_fmin(a, b); }
PIPE_INLINE double log(double x) { return __builtin_log(x); }
PIPE_INLINE double log1p(double x) { return __builtin_log1p(x); }
PIPE_INLINE double pow(double x, double y) { return __builtin_pow(x, y); }
PIPE_INLINE double sin(double x) { return __builtin_sin(x); }
PIPE_INLINE double tanh(double x) { return __builtin_tanh(x); }
#endif

/// Whether x is neither infinite nor NaN. A test of the exponent's bits, which -ffinite-math-only
/// does not fold to true.
PIPE_HD PIPE_INLINE bool isfinite(float x) {
  return (__builtin_bit_cast(unsigned, x) & 0x7f800000u) != 0x7f800000u;
}
PIPE_HD PIPE_INLINE bool isfinite(double x) {
  return (__builtin_bit_cast(unsigned long long, x) & 0x7ff0000000000000u) != 0x7ff0000000000000u;
}

}  // namespace pp::libm
