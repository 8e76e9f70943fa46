// error: wrong::Layer<0, .*wrong::size_must_be_positive\b.*Conv2d<.*Found<0, 0>
// SPDX-License-Identifier: BSL-1.0
//
// A window that never moves.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<8, 8, 6>, Conv2d<4, 3, Stride<1>>, Flatten, Linear<2>, MSE> {};
#else
struct Net : Model<Input<8, 8, 6>, Conv2d<4, 3, Stride<0>>, Flatten, Linear<2>, MSE> {};
#endif

using Trainer = Pipeline<Net, AdamW>;

#include "program.hpp"
