// error: wrong::Layer<0, .*wrong::reflection_must_be_narrower_than_its_input\b.*ReflectionPad<3>.*Expected<2>.*Found<3>
// SPDX-License-Identifier: BSL-1.0
//
// The mirror image of three cells has two beside the border.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<3, 6, 2>, ReflectionPad<2>, Flatten, Linear<2>, CrossEntropy> {};
#else
struct Net : Model<Input<3, 6, 2>, ReflectionPad<3>, Flatten, Linear<2>, CrossEntropy> {};
#endif

using Trainer = Pipeline<Net, Stages<1>, MicroBatches<2>, PortableHost, AdamW>;
#include "program.hpp"
