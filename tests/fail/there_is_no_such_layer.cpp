// error: wrong::there_is_no_such_layer, .*Conv3d<16, 3>.*UseInstead<.*Custom_layer_of_your_own>
// SPDX-License-Identifier: BSL-1.0
//
// A layer that other libraries have.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<4, 4, 3>, Linear<16>, LayerNorm, Flatten, Linear<2>, CrossEntropy> {};
#else
struct Net : Model<Input<4, 4, 3>, Conv3d<16, 3>, BatchNorm2d, MaxPool<2>, Flatten, Linear<2>,
                   CrossEntropyLoss> {};
#endif

using Trainer = Pipeline<Net, Stages<2>, PortableHost, AdamW>;
#include "program.hpp"
