// error: wrong::Layer<0, .*wrong::buffer_rule_is_out_of_range\b.*Custom<Shifted<2, 1> ?>
// SPDX-License-Identifier: BSL-1.0
//
// An average of a buffer and a mean lies between them.
#include <pipe/pipe.hpp>

using namespace pp;

template <int Momentum, int Terms>
struct Shifted {
  static constexpr int buffers = 1;
  static constexpr custom::buffer buffer(int, sample_shape in) {
    return {.form = sample_shape(in.columns()), .commit = {.momentum = Momentum, .terms = Terms}};
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
struct Net : Model<Input<4>, Custom<Shifted<1, 1>>, Linear<2>, MSE> {};
#else
struct Net : Model<Input<4>, Custom<Shifted<2, 1>>, Linear<2>, MSE> {};
#endif

using Trainer = Pipeline<Net, MicroBatches<2>, PortableHost, AdamW>;
#include "program.hpp"
