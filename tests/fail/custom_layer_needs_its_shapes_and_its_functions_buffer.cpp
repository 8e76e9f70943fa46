// error: wrong::Layer<0, .*wrong::custom_layer_needs_its_shapes_and_its_functions\b.*Custom<Shifted<false> ?>.*Missing<.*statistics>
// SPDX-License-Identifier: BSL-1.0
//
// What has a buffer says what it follows.
#include <pipe/pipe.hpp>

using namespace pp;

template <bool HasStatistics>
struct Shifted {
  static constexpr int buffers = 1;
  static constexpr custom::buffer buffer(int, sample_shape in) {
    return {.form = sample_shape(in.columns()), .commit = {.momentum = 0.1f}};
  }
  static constexpr sample_shape result(sample_shape in) { return in; }
  template <class T>
  static void forward(custom::forward<T> const&) {}
  template <class T>
  static void input_gradient(custom::input_gradient<T> const&) {}
  template <class T>
  static void statistics(custom::statistics<T> const&)
    requires HasStatistics
  {}
};

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<4>, Custom<Shifted<true>>, Linear<2>, MSE> {};
#else
struct Net : Model<Input<4>, Custom<Shifted<false>>, Linear<2>, MSE> {};
#endif

using Trainer = Pipeline<Net, MicroBatches<2>, PortableHost, AdamW>;
#include "program.hpp"
