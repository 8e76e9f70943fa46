// error: wrong::function_must_be_constexpr, .*Custom<.*Double.*>.*Function<.*result>
// SPDX-License-Identifier: BSL-1.0
//
// The shapes of a user's own layer are computed while the model compiles.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
#define PIPE_TEST_CONSTANT constexpr
#else
#define PIPE_TEST_CONSTANT
#endif

struct Double {
  static PIPE_TEST_CONSTANT sample_shape result(sample_shape in) { return in; }
  template <class T>
  static void forward(custom::forward<T> const& f) {
    for (long i = 0; i < f.samples * f.in.elements(); ++i) f.y[i] = 2 * f.x[i];
  }
  template <class T>
  static void input_gradient(custom::input_gradient<T> const& g) {
    for (long i = 0; i < g.samples * g.in.elements(); ++i) g.dx[i] = 2 * g.dy[i];
  }
};
struct Net : Model<Input<3>, Linear<4>, Custom<Double>, Linear<2>, MSE> {};

using Trainer = Pipeline<Net, PortableHost, AdamW>;
#include "program.hpp"
