// SPDX-License-Identifier: BSL-1.0
//
// The arguments of the functions of a user-defined layer: see nn/custom.hpp. All memory is the
// stage's, at planned places; on a GPU it is the device's, and T the type of values in memory:
// float, bf16 or fp16.
#pragma once

#include <type_traits>

#include <pipe/base/shape.hpp>

namespace pp {

/// The most parameters and buffers of a layer.
inline constexpr int most_custom_parameters = 3;

/// The type of a gradient of a parameter, of a buffer and of its sum, where values are T.
template <class T>
using accumulated = std::conditional_t<(sizeof(T) < sizeof(float)), float, T>;

/// y = f(x). One micro-batch: `samples` samples, one after the other in x and y.
template <class T>
struct custom_forward {
  int samples = 0;
  shape in{};  ///< of one sample of x
  T const* x = nullptr;
  T const* parameter[most_custom_parameters]{};
  T* y = nullptr;
  T* saved = nullptr;  ///< saved_per_sample numbers for each sample, kept for those below
  accumulated<T> const* buffer[most_custom_parameters]{};
};

/// dx from dy.
template <class T>
struct custom_input_gradient {
  int samples = 0;
  shape in{};  ///< of one sample of x
  T const *dy = nullptr, *x = nullptr, *saved = nullptr;
  T const* parameter[most_custom_parameters]{};
  T* dx = nullptr;
  accumulated<T> const* buffer[most_custom_parameters]{};
};

/// Adds this micro-batch's share to the gradient of each parameter.
template <class T>
struct custom_weight_gradient {
  int samples = 0;
  shape in{};  ///< of one sample of x
  T const *dy = nullptr, *x = nullptr, *saved = nullptr;
  accumulated<T>* gradient[most_custom_parameters]{};  ///< null for one that is frozen
};

/// Adds this micro-batch's share to the statistic of each buffer.
template <class T>
struct custom_statistics {
  int samples = 0;  ///< that are there; the last micro-batch may have fewer than planned
  shape in{};       ///< of one sample of x
  T const *x = nullptr, *saved = nullptr;
  accumulated<T>* sum[most_custom_parameters]{};  ///< null for one that is never written
};

}  // namespace pp
