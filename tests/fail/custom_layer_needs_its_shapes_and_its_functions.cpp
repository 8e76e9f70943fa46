// error: wrong::Layer<1, .*wrong::custom_layer_needs_its_shapes_and_its_functions\b.*Custom<Double<false> ?>.*Missing<.*input_gradient>
// SPDX-License-Identifier: BSL-1.0
//
// A layer of a user's own brings what backward needs.
#include <pipe/pipe.hpp>

using namespace pp;

template <bool HasGradient>
struct Double {
  static constexpr sample_shape result(sample_shape in) { return in; }
  template <class T>
  static void forward(custom::forward<T> const& f) {
    for (long i = 0; i < f.samples * f.in.elements(); ++i) f.y[i] = 2 * f.x[i];
  }
  template <class T>
  static void input_gradient(custom::input_gradient<T> const& g)
    requires HasGradient
  {
    for (long i = 0; i < g.samples * g.in.elements(); ++i) g.dx[i] = 2 * g.dy[i];
  }
};

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<3>, Linear<4>, Custom<Double<true>>, Linear<2>, MSE> {};
#else
struct Net : Model<Input<3>, Linear<4>, Custom<Double<false>>, Linear<2>, MSE> {};
#endif

using Trainer = Pipeline<Net, Stages<2>, MicroBatches<2>, PortableHost, AdamW>;
#include "program.hpp"
