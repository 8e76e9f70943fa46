// error: wrong::Layer<1, .*wrong::layer_needs_two_channels\b.*Softmax.*Found<1>
// SPDX-License-Identifier: BSL-1.0
//
// The probability of the only choice is 1; of one output a Sigmoid makes a probability.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<3>, Linear<1>, Sigmoid, MSE> {};
#else
struct Net : Model<Input<3>, Linear<1>, Softmax, MSE> {};
#endif
