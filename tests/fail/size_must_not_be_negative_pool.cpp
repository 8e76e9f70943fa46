// error: wrong::Layer<0, .*wrong::size_must_not_be_negative\b.*MaxPool2d<3.*Padding<-1.*Found<-1>
// SPDX-License-Identifier: BSL-1.0
//
// A pool that would leave out the border of its input.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<8, 8, 6>, MaxPool2d<3, Padding<0>>, Flatten, Linear<2>, MSE> {};
#else
struct Net : Model<Input<8, 8, 6>, MaxPool2d<3, Padding<-1>>, Flatten, Linear<2>, MSE> {};
#endif

using Trainer = Pipeline<Net, AdamW>;

#include "program.hpp"
