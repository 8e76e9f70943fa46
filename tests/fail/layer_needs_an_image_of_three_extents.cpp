// error: wrong::Layer<0, .*wrong::layer_needs_an_image_of_three_extents\b.*MaxPool2d<2>.*Found<12>
// SPDX-License-Identifier: BSL-1.0
//
// A pool over rows and columns of a value without them.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<4, 3, 2>, Linear<4>, MaxPool2d<2>, Flatten, Linear<2>, CrossEntropy> {};
#else
struct Net : Model<Input<4, 3>, Flatten, MaxPool2d<2>, Linear<2>, CrossEntropy> {};
#endif

using Trainer = Pipeline<Net, Stages<1>, MicroBatches<2>, PortableHost, AdamW>;
#include "program.hpp"
