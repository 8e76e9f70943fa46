// SPDX-License-Identifier: BSL-1.0
//
// A check against the parts of -ffast-math that define no macro. g++ defines one for each
// (config.hpp), clang++ only for -ffast-math and -ffinite-math-only. The others show in the
// optimiser: a licence to reorder makes a comparison constant that is not constant in IEEE
// arithmetic. Without an optimiser (-O0) the flags have no effect.
#pragma once

#include <pipe/base/config.hpp>

static_assert(sizeof(0.1) != sizeof(0.1f),
              "pipe needs IEEE arithmetic: compile without -fsingle-precision-constant");

namespace pp {

#if defined(__clang__) && !defined(__CUDACC__) && __has_attribute(error)

namespace wrong {  // noexcept: clang++ 14 reports only calls that cannot throw
[[gnu::error(
    "pipe needs IEEE arithmetic: compile without -fassociative-math and "
    "-funsafe-math-optimizations")]] void
sums_may_be_reordered() noexcept;
[[gnu::error("pipe needs IEEE arithmetic: compile without -freciprocal-math")]] void
quotients_may_be_products() noexcept;
[[gnu::error("pipe needs IEEE arithmetic: compile without -fno-signed-zeros")]] void
zeros_may_lose_their_sign() noexcept;
[[gnu::error("pipe needs IEEE arithmetic: compile without -fno-honor-nans")]] void
nans_may_be_ignored() noexcept;
}  // namespace wrong

namespace detail {

/// Compiles to nothing, or to one error that names the flag.
inline void require_ieee_arithmetic() {
  float volatile unknown = 1;
  float const x = unknown, sum = (x + 1e30f) - 1e30f, third = x / 3, product = x * (1.0f / 3),
              zero = x + 0.0f;
  bool const sums = __builtin_bit_cast(unsigned, sum) == __builtin_bit_cast(unsigned, x);
  bool const quotients =
      __builtin_bit_cast(unsigned, third) == __builtin_bit_cast(unsigned, product);
  bool const zeros = __builtin_bit_cast(unsigned, zero) == __builtin_bit_cast(unsigned, x);
  bool const not_nan = x == x;
  if (__builtin_constant_p(sums))
    wrong::sums_may_be_reordered();
  else if (__builtin_constant_p(quotients))
    wrong::quotients_may_be_products();
  else if (__builtin_constant_p(zeros))
    wrong::zeros_may_lose_their_sign();
  else if (__builtin_constant_p(not_nan))
    wrong::nans_may_be_ignored();
}

}  // namespace detail

#else

namespace detail {
inline void require_ieee_arithmetic() {}
}  // namespace detail

#endif

}  // namespace pp
