// SPDX-License-Identifier: BSL-1.0
//
// A layer with a buffer.
#pragma once

#include <pipe/nn/custom.hpp>

namespace laws {

namespace custom = pp::custom;
using pp::sample_shape;

// [buffer]
/// y = x - m, where m follows the mean of each column of x over the mini-batches so far.
struct Centered {
  static constexpr sample_shape result(sample_shape in) { return in; }
  static constexpr int buffers = 1;
  static constexpr custom::buffer buffer(int, sample_shape in) {
    return {.form = sample_shape(in.columns()), .commit = {.momentum = 0.25f, .terms = in.rows()}};
  }

  template <class T>
  static void forward(custom::forward<T> const& a) {
    for (long i = 0; i < a.samples * a.in.elements(); ++i)
      a.y[i] = T(custom::accumulated<T>(a.x[i]) - a.buffer[0][i % a.in.columns()]);
  }
  template <class T>
  static void input_gradient(custom::input_gradient<T> const& a) {
    for (long i = 0; i < a.samples * a.in.elements(); ++i) a.dx[i] = a.dy[i];
  }
  /// Adds to what earlier micro-batches have added.
  template <class T>
  static void statistics(custom::statistics<T> const& a) {
    for (long i = 0; i < a.samples * a.in.elements(); ++i)
      a.sum[0][i % a.in.columns()] += custom::accumulated<T>(a.x[i]);
  }
};
// [/buffer]

}  // namespace laws
