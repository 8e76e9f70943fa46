// error: wrong::Layer<0, .*wrong::layer_has_no_layers_inside\b.*Residual<
// SPDX-License-Identifier: BSL-1.0
//
// x + f(x) without an f would be 2 x.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<3>, Residual<Linear<3>>, Linear<4>, MSE> {};
#else
struct Net : Model<Input<3>, Residual<>, Linear<4>, MSE> {};
#endif
