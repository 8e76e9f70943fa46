// error: wrong::value_must_be_constexpr, .*Custom<Doubled>.*Value<.*samples_are_independent>
// compilers: g++ clang++
// SPDX-License-Identifier: BSL-1.0
//
// The compiler decides which kernels threads divide.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
#define PIPE_TEST_CONSTANT constexpr
#else
#define PIPE_TEST_CONSTANT inline
#endif

struct Doubled {
  static PIPE_TEST_CONSTANT bool samples_are_independent = true;
  static constexpr sample_shape result(sample_shape in) { return in; }
  template <class T>
  static void forward(custom::forward<T> const& a) {
    for (long i = 0; i < a.samples * a.in.elements(); ++i) a.y[i] = 2 * a.x[i];
  }
  template <class T>
  static void input_gradient(custom::input_gradient<T> const& a) {
    for (long i = 0; i < a.samples * a.in.elements(); ++i) a.dx[i] = 2 * a.dy[i];
  }
};
struct Net : Model<Input<3>, Linear<4>, Custom<Doubled>, Linear<2>, MSE> {};

using Trainer = Pipeline<Net, PortableHost>;
#include "program.hpp"
