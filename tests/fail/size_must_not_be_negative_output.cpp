// error: wrong::Layer<0, .*wrong::size_must_not_be_negative\b.*ConvTranspose2d<4.*OutputPadding<0, -1.*Found<0, -1>
// SPDX-License-Identifier: BSL-1.0
//
// Fewer columns in the output than its size without them.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<8, 8, 6>, ConvTranspose2d<4, 3, Stride<2>, OutputPadding<0>>, Flatten,
                   Linear<2>, MSE> {};
#else
struct Net : Model<Input<8, 8, 6>, ConvTranspose2d<4, 3, Stride<2>, OutputPadding<0, -1>>, Flatten,
                   Linear<2>, MSE> {};
#endif

using Trainer = Pipeline<Net, AdamW>;

#include "program.hpp"
