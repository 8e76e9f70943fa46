// error: wrong::pipeline_keeps_one_copy_of_each_weight<.*Chimera
// SPDX-License-Identifier: BSL-1.0
//
// Two directions need every weight twice, a wave needs it once.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Tanh, Linear<4>, Linear<2>, MSE> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, PortableHost, AdamW, Stages<4>, MicroBatches<4>, Hanayo<>>;
#else
using Trainer = Pipeline<Net, PortableHost, AdamW, Stages<4>, MicroBatches<4>, Chimera>;
#endif

#include "program.hpp"
