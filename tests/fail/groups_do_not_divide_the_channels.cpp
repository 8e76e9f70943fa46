// error: wrong::Layer<0, .*wrong::groups_do_not_divide_the_channels\b.*Conv2d<.*Expected<4>.*Found<6, 8>
// SPDX-License-Identifier: BSL-1.0
//
// Six channels in four groups.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<8, 8, 6>, Conv2d<8, 3, Groups<2>>, Flatten, Linear<2>, MSE> {};
#else
struct Net : Model<Input<8, 8, 6>, Conv2d<8, 3, Groups<4>>, Flatten, Linear<2>, MSE> {};
#endif

using Trainer = Pipeline<Net, AdamW>;

#include "program.hpp"
