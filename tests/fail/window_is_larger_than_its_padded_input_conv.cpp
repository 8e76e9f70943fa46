// error: wrong::Layer<0, .*wrong::window_is_larger_than_its_padded_input\b.*Conv2d<.*Expected<5>.*Found<4>
// SPDX-License-Identifier: BSL-1.0
//
// A dilated kernel that spans more rows than there are.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net
    : Model<Input<4, 8, 6>, Conv2d<4, 3, Dilation<2>, Padding<1, 0>>, Flatten, Linear<2>, MSE> {};
#else
struct Net : Model<Input<4, 8, 6>, Conv2d<4, 3, Dilation<2>>, Flatten, Linear<2>, MSE> {};
#endif

using Trainer = Pipeline<Net, AdamW>;

#include "program.hpp"
