// error: wrong::there_is_no_such_layer, .*BatchNorm2d.*UseInstead<.*BatchNorm>
// SPDX-License-Identifier: BSL-1.0
//
// A layer of another name here.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<4>, Linear<8>, LayerNorm, Linear<2>, MSE> {};
#else
struct Net : Model<Input<4>, Linear<8>, Residual<BatchNorm2d, PReLU>, Linear<2>, FocalLoss> {};
#endif
