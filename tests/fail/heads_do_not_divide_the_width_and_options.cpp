// error: wrong::Layer<1, .*wrong::heads_do_not_divide_the_width\b.*Attention<3>.*Found<4>
// SPDX-License-Identifier: BSL-1.0
//
// A wrong model is one error, whatever else is wrong: its options are not looked at.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<2, 3>, Linear<4>, Attention<2>, Linear<2>, MSE> {};
using Trainer = Pipeline<Net, Stages<2>, PortableHost, AdamW>;
#else
struct Net : Model<Input<2, 3>, Linear<4>, Attention<3>, Linear<2>, MSE> {};
using Trainer = Pipeline<Net, Stages<0>, MicroBatchSize<-1>, Adam, PortableHost, AdamW>;
#endif

#include "program.hpp"
