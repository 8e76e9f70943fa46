// error: wrong::Layer<1, .*wrong::pooling_needs_more_than_one_position\b.*MeanPool.*Found<12>
// SPDX-License-Identifier: BSL-1.0
//
// After Flatten a sample is one row.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<3, 2>, Linear<4>, MeanPool, Linear<2>, CrossEntropy> {};
#else
struct Net : Model<Input<3, 2>, Linear<4>, Flatten, MeanPool, Linear<2>, CrossEntropy> {};
#endif

using Trainer = Pipeline<Net, Stages<2>, MicroBatches<2>, PortableHost, AdamW>;
#include "program.hpp"
