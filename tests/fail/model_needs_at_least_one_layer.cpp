// error: wrong::Layer<0, .*wrong::model_needs_at_least_one_layer\b.*MSE
// SPDX-License-Identifier: BSL-1.0
//
// An input and a loss alone have nothing to train.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<3>, Linear<4>, ReLU, MSE> {};
#else
struct Net : Model<Input<3>, Flatten, MSE> {};
#endif

using Trainer = Pipeline<Net, Stages<2>, MicroBatches<2>, PortableHost, AdamW>;
#include "program.hpp"
