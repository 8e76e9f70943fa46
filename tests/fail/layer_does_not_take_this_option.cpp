// error: wrong::Layer<1, .*wrong::layer_does_not_take_this_option\b.*Linear<2, .*Causal>, .*Causal>
// SPDX-License-Identifier: BSL-1.0
//
// An option of another layer.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<3>, Linear<4>, Linear<2, NoBias>, MSE> {};
#else
struct Net : Model<Input<3>, Linear<4>, Linear<2, Causal>, MSE> {};
#endif

using Trainer = Pipeline<Net, Stages<2>, MicroBatches<2>, PortableHost, AdamW>;
#include "program.hpp"
