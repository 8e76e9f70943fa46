// error: wrong::sync_over_must_divide_the_micro_batch, .*SyncOver<4.*MicroBatchSize<6
// SPDX-License-Identifier: BSL-1.0
//
// A micro-batch of one and a half groups of samples.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, With<BatchNorm, SyncOver<4>>, ReLU, Linear<2>, MSE> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, MicroBatchSize<8>, PortableHost>;
#else
using Trainer = Pipeline<Net, MicroBatchSize<6>, PortableHost>;
#endif

#include "program.hpp"
