// error: wrong::micro_batch_is_too_large, .*Net.*MicroBatchSize<16777216>.*AtMost<16384L?>
// SPDX-License-Identifier: BSL-1.0
//
// A value of a micro-batch has at most 2^36 numbers.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Input<3>, Linear<4194304>, Linear<2>, MSE> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, MicroBatchSize<16384>, PortableHost>;
#else
using Trainer = Pipeline<Net, MicroBatchSize<16777216>, PortableHost>;
#endif

static_assert(Trainer::plan.bubble < 1);
