// error: wrong::pipeline_keeps_one_version_of_each_weight<.*PipeDream<
// SPDX-License-Identifier: BSL-1.0
//
// Without a flush, older micro-batches go on with older weights.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Tanh, Linear<4>, Linear<2>, MSE> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, PortableHost, AdamW, Stages<4>, MicroBatches<4>, ZeroBubbleH2>;
#else
using Trainer = Pipeline<Net, PortableHost, AdamW, Stages<4>, MicroBatches<4>, PipeDream<>>;
#endif

#include "program.hpp"
