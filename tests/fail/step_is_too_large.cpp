// error: wrong::step_is_too_large, .*Net.*MicroBatches<1000000>.*MicroBatchSize<64>
// SPDX-License-Identifier: BSL-1.0
//
// Amounts of the plan are counted in 64 bits.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Input<1048576>, Linear<32768>, Linear<2>, MSE> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, MicroBatches<1000>, MicroBatchSize<64>, PortableHost>;
#else
using Trainer = Pipeline<Net, MicroBatches<1000000>, MicroBatchSize<64>, PortableHost>;
#endif

static_assert(Trainer::plan.bubble < 1);
