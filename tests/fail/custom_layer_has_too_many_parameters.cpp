// error: wrong::Layer<1, .*wrong::custom_layer_has_too_many_parameters\b.*Custom<Scales<4> ?>.*Expected<3>.*Found<4>
// SPDX-License-Identifier: BSL-1.0
//
// There is room for three.
#include <pipe/pipe.hpp>

using namespace pp;

template <int Count>
struct Scales {
  static constexpr int parameters = Count;
  static constexpr custom::parameter parameter(int i, sample_shape in) {
    return {1, in.columns(), i == 0 ? "a" : i == 1 ? "b" : "c"};
  }
  static constexpr sample_shape result(sample_shape in) { return in; }
  template <class T>
  static void forward(custom::forward<T> const&) {}
  template <class T>
  static void input_gradient(custom::input_gradient<T> const&) {}
  template <class T>
  static void weight_gradient(custom::weight_gradient<T> const&) {}
};

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<3>, Linear<4>, Custom<Scales<3>>, Linear<2>, MSE> {};
#else
struct Net : Model<Input<3>, Linear<4>, Custom<Scales<4>>, Linear<2>, MSE> {};
#endif

using Trainer = Pipeline<Net, Stages<2>, MicroBatches<2>, PortableHost, AdamW>;
#include "program.hpp"
