// error: wrong::Layer<0, .*wrong::padding_must_be_at_most_half_of_the_window\b.*MaxPool2d<3, .*Padding<2.*Expected<1>.*Found<2>
// SPDX-License-Identifier: BSL-1.0
//
// Windows that would lie in the padding alone.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<4, 6, 2>, MaxPool2d<3, Padding<1>>, Flatten, Linear<2>, CrossEntropy> {};
#else
struct Net : Model<Input<4, 6, 2>, MaxPool2d<3, Padding<2>>, Flatten, Linear<2>, CrossEntropy> {};
#endif

using Trainer = Pipeline<Net, Stages<1>, MicroBatches<2>, PortableHost, AdamW>;
#include "program.hpp"
