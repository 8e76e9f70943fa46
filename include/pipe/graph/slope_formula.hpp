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
    return x > T(0) ? x : slope * x;
  }
  /// The gradient of x.
  template <class T>
  PIPE_HD static PIPE_INLINE T input_gradient(T dy, T x, T slope) {
    return x > T(0) ? dy : slope * dy;
  }
  /// The term of an element in the gradient of its slope.
  template <class T>
  PIPE_HD static PIPE_INLINE T slope_gradient(T dy, T x) {
    return x > T(0) ? T(0) : dy * x;
  }
};

}  // namespace pp::detail
