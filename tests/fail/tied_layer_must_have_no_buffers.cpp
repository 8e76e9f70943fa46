// error: wrong::Layer<1, .*wrong::tied_layer_must_have_no_buffers\b.*Custom<Shifted ?>
// SPDX-License-Identifier: BSL-1.0
//
// A statistic of two places is neither's.
#include <pipe/pipe.hpp>

using namespace pp;

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
  static void statistics(custom::statistics<T> const&) {}
};

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<4>, Custom<Shifted>, Custom<Shifted>, Linear<2>, MSE> {};
#else
struct Net : Model<Input<4>, Named<"block", Custom<Shifted>>, Tied<"block">, Linear<2>, MSE> {};
#endif

using Trainer = Pipeline<Net, Stages<2>, MicroBatches<2>, PortableHost, AdamW>;
#include "program.hpp"
