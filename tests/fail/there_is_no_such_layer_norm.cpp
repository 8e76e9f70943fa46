// error: wrong::there_is_no_such_layer<.*BatchNorm2d.*UseInstead<.*LayerNorm_or_RMSNorm>
// SPDX-License-Identifier: BSL-1.0
//
// A layer whose width would be inferred has no numbers here.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<4>, Linear<8>, LayerNorm, Linear<2>, MSE> {};
#else
struct Net : Model<Input<4>, Linear<8>, Residual<BatchNorm2d, PReLU>, Linear<2>, FocalLoss> {};
#endif
