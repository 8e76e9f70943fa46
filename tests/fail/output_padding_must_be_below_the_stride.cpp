// error: wrong::Layer<0, .*wrong::output_padding_must_be_below_the_stride\b.*ConvTranspose2d<.*Expected<2>.*Found<2>
// SPDX-License-Identifier: BSL-1.0
//
// As many rows more as the stride is long.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<8, 8, 6>, ConvTranspose2d<4, 3, Stride<2>, OutputPadding<1>>, Flatten,
                   Linear<2>, MSE> {};
#else
struct Net : Model<Input<8, 8, 6>, ConvTranspose2d<4, 3, Stride<2>, OutputPadding<2>>, Flatten,
                   Linear<2>, MSE> {};
#endif

using Trainer = Pipeline<Net, AdamW>;

#include "program.hpp"
