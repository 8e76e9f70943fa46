// error: wrong::divided_gradients_are_of_one_micro_batch<.*ZeRO<2>.*MicroBatches<4>
// SPDX-License-Identifier: BSL-1.0
//
// Gradients of several micro-batches are added up whole.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Linear<2>, MSE> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, PortableHost, MicroBatches<4>, ZeRO<1>>;
#else
using Trainer = Pipeline<Net, PortableHost, MicroBatches<4>, ZeRO<2>>;
#endif

#include "program.hpp"
