// error: wrong::Layer<0, .*wrong::layer_needs_an_image_of_three_extents\b.*Conv2d<.*Found<8, 6>
// SPDX-License-Identifier: BSL-1.0
//
// A sequence where an image is needed.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<8, 1, 6>, Conv2d<4, Axes<3, 1>>, Flatten, Linear<2>, MSE> {};
#else
struct Net : Model<Input<8, 6>, Conv2d<4, 3>, Flatten, Linear<2>, MSE> {};
#endif

using Trainer = Pipeline<Net, AdamW>;

#include "program.hpp"
