// error: wrong::schedule_refuses_these_numbers, .*DualPipeV.*Stages<4>.*MicroBatches<3>
// SPDX-License-Identifier: BSL-1.0
//
// Two ranks of two chunks each: with fewer than four micro-batches the two directions do not meet.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Tanh, Linear<4>, Linear<2>, MSE> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, PortableHost, AdamW, Stages<4>, MicroBatches<4>, DualPipeV>;
#else
using Trainer = Pipeline<Net, PortableHost, AdamW, Stages<4>, MicroBatches<3>, DualPipeV>;
#endif

#include "program.hpp"
