// SPDX-License-Identifier: BSL-1.0
//
// The formulas of PReLU and of its gradients, for one element, as the kernels of all backends
// compute them. At x = 0 and for x that is not a number, the slope counts, as in PyTorch.
#pragma once

#include <pipe/base/config.hpp>

namespace pp::detail {

struct slope_formula {
  /// x above 0, else slope x.
  template <class T>
  PIPE_HD static PIPE_INLINE T forward(T x, T slope) {
    T const below = slope * x;  // computed for all x, so that loops become vector code
    return x > T(0) ? x : below;
  }
  /// The gradient of x.
  template <class T>
  PIPE_HD static PIPE_INLINE T input_gradient(T dy, T x, T slope) {
    T const below = slope * dy;
    return x > T(0) ? dy : below;
  }
  /// The term of an element in the gradient of its slope.
  template <class T>
  PIPE_HD static PIPE_INLINE T slope_gradient(T dy, T x) {
    T const below = dy * x;
    return x > T(0) ? T(0) : below;
  }
};

}  // namespace pp::detail
