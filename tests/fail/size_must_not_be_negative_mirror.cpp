// error: wrong::Layer<0, .*wrong::size_must_not_be_negative\b.*ReflectionPad<-1.*Found<-1>
// SPDX-License-Identifier: BSL-1.0
//
// Only zeros can be cut off, by a negative Pad.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<8, 8, 6>, Pad<-1>, Flatten, Linear<2>, MSE> {};
#else
struct Net : Model<Input<8, 8, 6>, ReflectionPad<-1>, Flatten, Linear<2>, MSE> {};
#endif

using Trainer = Pipeline<Net, AdamW>;

#include "program.hpp"
