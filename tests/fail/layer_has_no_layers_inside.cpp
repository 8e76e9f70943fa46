// error: wrong::Layer<1, .*wrong::layer_has_no_layers_inside\b.*Repeat<3
// SPDX-License-Identifier: BSL-1.0
//
// What is made of layers has at least one.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<3>, Linear<4>, Repeat<3, Linear<4>>, MSE> {};
#else
struct Net : Model<Input<3>, Linear<4>, Repeat<3>, MSE> {};
#endif
