// error: wrong::Layer<0, .*wrong::reshape_must_keep_the_number_of_elements\b.*Reshape<5, -1>.*Expected<24>.*Found<5, -1>
// SPDX-License-Identifier: BSL-1.0
//
// 24 numbers in rows of five.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<4, 6>, Reshape<6, Rest>, Flatten, Linear<2>, CrossEntropy> {};
#else
struct Net : Model<Input<4, 6>, Reshape<5, Rest>, Flatten, Linear<2>, CrossEntropy> {};
#endif

using Trainer = Pipeline<Net, Stages<1>, MicroBatches<2>, PortableHost, AdamW>;
#include "program.hpp"
