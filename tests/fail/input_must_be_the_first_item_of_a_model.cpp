// error: wrong::Layer<1, .*wrong::input_must_be_the_first_item_of_a_model\b.*Input<4>
// SPDX-License-Identifier: BSL-1.0
//
// One input, and nothing before it.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<3>, Linear<4>, Linear<2>, MSE> {};
#else
struct Net : Model<Input<3>, Linear<4>, Input<4>, Linear<2>, MSE> {};
#endif

using Trainer = Pipeline<Net, Stages<2>, MicroBatches<2>, PortableHost, AdamW>;
#include "program.hpp"
