// SPDX-License-Identifier: BSL-1.0
//
// The square root in constant evaluations, where the standard library's is no constant.
#pragma once

namespace pp::detail {

/// The square root of a floating-point number, computed in double and rounded to T; 0 for x <= 0.
template <class T>
constexpr T constexpr_sqrt(T x) {
  if (!(x > 0)) return 0;
  double r = x > 1 ? x : 1;
  for (double next = 0;; r = next) {  // Newton's method: decreases from above until it converges
    next = 0.5 * (r + x / r);
    if (!(next < r)) return T(r);
  }
}

}  // namespace pp::detail
