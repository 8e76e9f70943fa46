// error: wrong::Layer<1, .*wrong::layer_needs_two_channels\b.*LayerNorm.*Found<5, 1>
// SPDX-License-Identifier: BSL-1.0
//
// A single number less its mean is 0: the output would be the bias.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<5, 3>, Linear<2>, LayerNorm, Linear<1>, MSE> {};
#else
struct Net : Model<Input<5, 3>, Linear<1>, LayerNorm, Linear<1>, MSE> {};
#endif
