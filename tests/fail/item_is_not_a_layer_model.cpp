// error: wrong::Layer<1, .*wrong::item_is_not_a_layer\b.*Inner
// SPDX-License-Identifier: BSL-1.0
//
// A model is no layer of another: what it shares with it is an alias for a Seq.
#include <pipe/pipe.hpp>

using namespace pp;

using Body = Seq<Linear<4>, Tanh>;
struct Inner : Model<Input<4>, Body, MSE> {};

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<3>, Linear<4>, Body, MSE> {};
#else
struct Net : Model<Input<3>, Linear<4>, Inner, MSE> {};
#endif

using Trainer = Pipeline<Net, Stages<2>, MicroBatches<2>, PortableHost, AdamW>;
#include "program.hpp"
