// SPDX-License-Identifier: BSL-1.0
//
// The arguments of the functions of a user-defined layer (nn/custom.hpp) and of a loss by rows
// (nn/row_loss.hpp). All pointers are to memory of the stage, at planned offsets: device memory on
// a GPU. T is the type of values in memory: float, double, bf16 or fp16.
#pragma once

#include <type_traits>

#include <pipe/base/config.hpp>
#include <pipe/base/shape.hpp>

namespace pp {

namespace detail {

/// The maximum number of parameters, and of buffers, of a user-defined layer.
inline constexpr int most_custom_parameters = 3;

}  // namespace detail

namespace custom {

/// The type of parameter gradients, buffers and their sums where values are T: float for 16-bit
/// types, so that sums over micro-batches do not lose small addends.
template <class T>
using accumulated = std::conditional_t<(sizeof(T) < sizeof(float)), float, T>;

/// A row of numbers: of a loss's input, of a label, or of slopes.
template <class T>
struct row {
  T* values = nullptr;
  int size = 0;

  PIPE_HD PIPE_INLINE T& operator[](int i) const { return values[i]; }
  PIPE_HD PIPE_INLINE T* begin() const { return values; }
  PIPE_HD PIPE_INLINE T* end() const { return values + size; }
};

/// Arguments of the forward: y = f(x) for one micro-batch, or for some of its samples if a layer's
/// samples are independent.
///
/// shape: x[samples][in], y[samples][out], samples contiguous
template <class T>
struct forward {
  int samples = 0;
  sample_shape in{};  ///< shape of one sample of x
  T const* x = nullptr;
  T const* parameter[detail::most_custom_parameters]{};
  T* y = nullptr;
  T* saved = nullptr;  ///< saved_per_sample numbers per sample, kept for the backward functions
  accumulated<T> const* buffer[detail::most_custom_parameters]{};
};

/// Arguments of the input gradient: overwrites dx[samples][in] from dy[samples][out].
template <class T>
struct input_gradient {
  int samples = 0;
  sample_shape in{};  ///< shape of one sample of x
  T const *dy = nullptr, *x = nullptr, *saved = nullptr;
  T const* parameter[detail::most_custom_parameters]{};
  T* dx = nullptr;
  accumulated<T> const* buffer[detail::most_custom_parameters]{};
};

/// Arguments of the weight gradient: adds this micro-batch's share to the gradient of each
/// parameter. Sums run over the micro-batches of a step.
///
/// law: parameters and buffers are those that the input gradient of the micro-batch reads
template <class T>
struct weight_gradient {
  int samples = 0;
  sample_shape in{};  ///< shape of one sample of x
  T const *dy = nullptr, *x = nullptr, *saved = nullptr;
  T const* parameter[detail::most_custom_parameters]{};
  accumulated<T>* gradient[detail::most_custom_parameters]{};  ///< null: not trained
  accumulated<T> const* buffer[detail::most_custom_parameters]{};
};

/// Arguments of the statistics: adds this micro-batch's share to the sum of each buffer.
template <class T>
struct statistics {
  int samples = 0;    ///< samples present; the last micro-batch may have fewer than planned
  sample_shape in{};  ///< shape of one sample of x
  T const *x = nullptr, *saved = nullptr;
  T const* parameter[detail::most_custom_parameters]{};
  accumulated<T>*
      sum[detail::most_custom_parameters]{};  ///< null for a buffer that is never written
  accumulated<T> const* buffer[detail::most_custom_parameters]{};
};

}  // namespace custom

}  // namespace pp
