// error: wrong::Layer<1, .*wrong::layer_does_not_take_this_option\b.*Linear<2, .*Init<.*ReLU.*>, .*Init<.*ReLU
// SPDX-License-Identifier: BSL-1.0
//
// An option whose own arguments are none.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<3>, Linear<4>, Linear<2, Init<Xavier, Zeros>>, MSE> {};
#else
struct Net : Model<Input<3>, Linear<4>, Linear<2, Init<ReLU>>, MSE> {};
#endif

using Trainer = Pipeline<Net, Stages<2>, MicroBatches<2>, PortableHost, AdamW>;
#include "program.hpp"
