// error: wrong::number_must_be_positive, .*MicroBatches<0>
// SPDX-License-Identifier: BSL-1.0
//
// A mini-batch has at least one micro-batch.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Linear<2>, MSE> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, PortableHost, AdamW, MicroBatches<1>>;
#else
using Trainer = Pipeline<Net, PortableHost, AdamW, MicroBatches<0>>;
#endif

#include "program.hpp"
