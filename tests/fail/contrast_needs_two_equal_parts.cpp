// error: wrong::Layer<1, .*wrong::contrast_needs_two_equal_parts\b.*InfoNCE.*Found<9>
// SPDX-License-Identifier: BSL-1.0
//
// A row is two halves that belong together.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<3>, Linear<8>, InfoNCE<1, 10>> {};
#else
struct Net : Model<Input<3>, Linear<9>, InfoNCE<1, 10>> {};
#endif

using Trainer = Pipeline<Net, MicroBatches<2>, MicroBatchSize<4>, PortableHost, AdamW>;
#include "program.hpp"
