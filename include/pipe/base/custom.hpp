// SPDX-License-Identifier: BSL-1.0
//
// What the functions of a user's own layer are called with: see nn/custom.hpp. All memory is the stage's, at planned places.
#pragma once

#include <pipe/base/shape.hpp>

namespace pp {

/// A layer may have so many parameters.
inline constexpr int most_custom_parameters = 3;

/// y = f(x). One micro-batch: `samples` samples, one after the other in x and y.
template <class T>
struct custom_forward {
  int samples = 0;
  shape in{};  ///< of one sample of x
  T const* x = nullptr;
  T const* parameter[most_custom_parameters]{};
  T* y = nullptr;
  T* saved = nullptr;  ///< saved_per_sample numbers for each sample, kept for the two below
};

/// dx from dy.
template <class T>
struct custom_input_gradient {
  int samples = 0;
  shape in{};  ///< of one sample of x
  T const *dy = nullptr, *x = nullptr, *saved = nullptr;
  T const* parameter[most_custom_parameters]{};
  T* dx = nullptr;
};

/// Adds this micro-batch's share to the gradient of each parameter.
template <class T>
struct custom_weight_gradient {
  int samples = 0;
  shape in{};  ///< of one sample of x
  T const *dy = nullptr, *x = nullptr, *saved = nullptr;
  T* gradient[most_custom_parameters]{};  ///< null for one that is frozen
};

}  // namespace pp
