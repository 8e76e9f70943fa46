// error: wrong::Layer<0, .*wrong::window_is_larger_than_its_padded_input\b.*AvgPool2d<5>.*Expected<5>.*Found<4>
// SPDX-License-Identifier: BSL-1.0
//
// A window of five rows on an image of four.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<5, 6, 2>, AvgPool2d<5>, Flatten, Linear<2>, CrossEntropy> {};
#else
struct Net : Model<Input<4, 6, 2>, AvgPool2d<5>, Flatten, Linear<2>, CrossEntropy> {};
#endif

using Trainer = Pipeline<Net, Stages<1>, MicroBatches<2>, PortableHost, AdamW>;
#include "program.hpp"
