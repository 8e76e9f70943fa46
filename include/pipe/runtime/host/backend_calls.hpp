// SPDX-License-Identifier: BSL-1.0
//
// The functions that a backend gives the runtime, chosen once for the machine that the program runs
// on.
#pragma once

#include <cstddef>

#include <pipe/backend/host/parts.hpp>
#include <pipe/runtime/description.hpp>

namespace pp::detail {

/// One range of a chunk's parameters to update; if its elements are single ones, those that are
/// `own`.
template <class T>
struct update_request {
  update_range const& range;
  T* values = nullptr;
  T const* gradients = nullptr;
  T* state = nullptr;
  T* workspace = nullptr;
  long step = 1;
  double learning_rate = 0, gradient_scale = 1;
  host::share own{};
};

/// What a backend gives the runtime.
template <class T>
struct backend_calls {
  host::kernel<T> const* groups = nullptr;
  double (*sum_of_squares)(std::ptrdiff_t, T const*) = nullptr;
  void (*add)(std::ptrdiff_t, T*, T const*) = nullptr;
  /// out[c * out_stride + r] = in[r * in_stride + c]
  void (*transpose)(T const* in, std::ptrdiff_t rows, std::ptrdiff_t columns,
                    std::ptrdiff_t in_stride, T* out, std::ptrdiff_t out_stride) = nullptr;
  void (*update)(void const* optimizer, update_request<T> const&) = nullptr;
  void const* optimizer = nullptr;
  void (*clamp)(std::ptrdiff_t, T*, T) = nullptr;               ///< where steps clip by value
  void (*approach)(std::ptrdiff_t, T*, T const*, T) = nullptr;  ///< where averages are kept
};

}  // namespace pp::detail
