// error: wrong::steps_do_not_overlap_with<.*Steady<.*SumIn<4>
// SPDX-License-Identifier: BSL-1.0
//
// Leaves of a mini-batch end with a barrier each.
#include <pipe/pipe.hpp>
#include <pipe/schedule/families.hpp>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Tanh, Linear<4>, Linear<2>, MSE> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, PortableHost, AdamW, Stages<4>, MicroBatches<4>, Steady<>>;
#else
using Trainer = Pipeline<Net, PortableHost, AdamW, Stages<4>, MicroBatches<4>, Steady<>, SumIn<4>>;
#endif

#include "program.hpp"
