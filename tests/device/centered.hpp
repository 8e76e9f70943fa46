// SPDX-License-Identifier: BSL-1.0
//
// A user-defined layer with a buffer, for the engine for a GPU on the CPU.
#pragma once

#include <cuda_runtime.h>

#include "laws/centered.hpp"

namespace on_host {

/// laws::Centered with functions that put on a stream what runs on it.
struct Centered : laws::Centered {
  using laws::Centered::forward, laws::Centered::input_gradient, laws::Centered::statistics;
  template <class T>
  static void forward(pp::custom::forward<T> const& a, cudaStream_t on) {
    on->put([a] { forward(a); });
  }
  template <class T>
  static void input_gradient(pp::custom::input_gradient<T> const& a, cudaStream_t on) {
    on->put([a] { input_gradient(a); });
  }
  template <class T>
  static void statistics(pp::custom::statistics<T> const& a, cudaStream_t on) {
    on->put([a] { statistics(a); });
  }
};

}  // namespace on_host
