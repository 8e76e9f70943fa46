// error: wrong::function_must_be_constexpr, .*Custom<.*Scale.*>.*Function<.*parameter>
// SPDX-License-Identifier: BSL-1.0
//
// The parameters of a user's own layer are planned while the model compiles.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
#define PIPE_TEST_CONSTANT constexpr
#else
#define PIPE_TEST_CONSTANT
#endif

struct Scale {
  static constexpr int parameters = 1;
  static constexpr sample_shape result(sample_shape in) { return in; }
  static PIPE_TEST_CONSTANT custom::parameter parameter(int, sample_shape in) {
    return {1, in.columns()};
  }
  template <class T>
  static void forward(custom::forward<T> const& f) {
    for (long i = 0; i < f.samples * f.in.elements(); ++i)
      f.y[i] = f.parameter[0][i % f.in.elements()] * f.x[i];
  }
  template <class T>
  static void input_gradient(custom::input_gradient<T> const& g) {
    for (long i = 0; i < g.samples * g.in.elements(); ++i)
      g.dx[i] = g.parameter[0][i % g.in.elements()] * g.dy[i];
  }
  template <class T>
  static void weight_gradient(custom::weight_gradient<T> const&) {}
};
struct Net : Model<Input<3>, Linear<4>, Custom<Scale>, Linear<2>, MSE> {};

using Trainer = Pipeline<Net, PortableHost, AdamW>;
#include "program.hpp"
