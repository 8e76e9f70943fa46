// error: template argument 3 is invalid|reference to 'Conv1d' is ambiguous
// error(nvcc): "Conv1d" is ambiguous
// errors(clang++): 3
// lines: 40
// SPDX-License-Identifier: BSL-1.0
//
// A type of the program with the name of a layer: compilers say so by themselves, in words of their own.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Softer : Activation<Softer> {
#else
struct Conv1d {
#endif
  static constexpr bool derivative_reads_output = false;
  template <class T>
  PIPE_HD static T forward(T x) {
    return x / 2;
  }
  template <class T>
  PIPE_HD static T derivative(T) {
    return T(1) / 2;
  }
};

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<3>, Linear<4>, Softer, Linear<2>, MSE> {};
#else
struct Net : Model<Input<3>, Linear<4>, Conv1d, Linear<2>, MSE> {};
#endif
