// error: wrong::there_is_no_such_layer, .*LSTM<128>.*UseInstead<.*Attention_of_the_number_of_heads>
// SPDX-License-Identifier: BSL-1.0
//
// A type of the program with a name from elsewhere is found by its scope.
#include <pipe/pipe.hpp>

using namespace pp;

struct PReLU : activation<::PReLU> {
  static constexpr bool derivative_reads_output = true;
  template <class T>
  PIPE_HD static T forward(T x) {
    return x;
  }
  template <class T>
  PIPE_HD static T derivative(T) {
    return T(1);
  }
};
namespace my {
using BatchNorm2d = LayerNorm;
}

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<3>, Linear<4>, my::BatchNorm2d, ::PReLU, Linear<2>, MSE> {};
#else
struct Net
    : Model<Input<3>, Linear<4>, my::BatchNorm2d, ::PReLU, LSTM<128>, pp::PReLU, Linear<2>, MSE> {};
#endif
