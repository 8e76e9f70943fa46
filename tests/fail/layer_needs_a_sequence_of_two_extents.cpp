// error: wrong::Layer<0, .*wrong::layer_needs_a_sequence_of_two_extents\b.*MaxPool1d<2>.*Found<4, 3, 2>
// SPDX-License-Identifier: BSL-1.0
//
// A pool over positions of an image.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<4, 2>, MaxPool1d<2>, Flatten, Linear<2>, CrossEntropy> {};
#else
struct Net : Model<Input<4, 3, 2>, MaxPool1d<2>, Flatten, Linear<2>, CrossEntropy> {};
#endif

using Trainer = Pipeline<Net, Stages<1>, MicroBatches<2>, PortableHost, AdamW>;
#include "program.hpp"
