// error: wrong::number_is_too_large, .*MicroBatches<100000>.*MicroBatchSize<100000>.*AtMost<2147483647L?>
// SPDX-License-Identifier: BSL-1.0
//
// A mini-batch has fewer than 2^31 samples.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Linear<2>, MSE> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, MicroBatches<10>, MicroBatchSize<100>, PortableHost>;
#else
using Trainer = Pipeline<Net, MicroBatches<100000>, MicroBatchSize<100000>, PortableHost>;
#endif

#include "program.hpp"
