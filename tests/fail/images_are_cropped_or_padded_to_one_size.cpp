// error: wrong::images_are_cropped_or_padded_to_one_size, .*Input<8, 8, 3>
// SPDX-License-Identifier: BSL-1.0
//
// An image of other extents is no image with padding at its end.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Input<8, 8, 3>, Conv2d<4, 3>, ReLU, MeanPool, Linear<2>, MSE> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, PortableHost, NoLengths>;
#else
using Trainer = Pipeline<Net, PortableHost, Lengths<>>;
#endif

#include "program.hpp"
