// error: wrong::Layer<0, .*wrong::layer_needs_two_channels\b.*With<.*RMSNorm, .*Found<1>
// SPDX-License-Identifier: BSL-1.0
//
// A single number over its size is 1 or -1.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<2>, With<RMSNorm, Epsilon<1, 100>>, Linear<2>, MSE> {};
#else
struct Net : Model<Input<1>, With<RMSNorm, Epsilon<1, 100>>, Linear<2>, MSE> {};
#endif
