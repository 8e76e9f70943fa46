// error: wrong::schedule_has_no_stage_replicas, .*ZeroBubbleH1.*StageReplicas<1, 2>
// SPDX-License-Identifier: BSL-1.0
//
// Which rank of a stage runs a micro-batch is the schedule's to say.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Tanh, Linear<4>, Linear<2>, MSE> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, PortableHost, AdamW, StageReplicas<1, 2>, MicroBatches<4>, GPipe>;
#else
using Trainer =
    Pipeline<Net, PortableHost, AdamW, StageReplicas<1, 2>, MicroBatches<4>, ZeroBubbleH1>;
#endif

#include "program.hpp"
