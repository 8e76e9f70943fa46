// error: wrong::Layer<1, .*wrong::residual_must_keep_the_shape\b.*Residual<.*Expected<2, 8>.*Found<2, 9>
// SPDX-License-Identifier: BSL-1.0
//
// x + f(x) needs f(x) of the shape of x. The position is that of the Residual.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<2, 3>, Linear<8>, Residual<LayerNorm, Linear<9>, Linear<8>>, MSE> {};
#else
struct Net : Model<Input<2, 3>, Linear<8>, Residual<LayerNorm, Linear<9>>, MSE> {};
#endif

using Trainer = Pipeline<Net, Stages<2>, MicroBatches<2>, PortableHost, AdamW>;
#include "program.hpp"
