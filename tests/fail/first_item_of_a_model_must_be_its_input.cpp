// error: wrong::Layer<0, .*wrong::first_item_of_a_model_must_be_its_input\b.*Linear<4>
// SPDX-License-Identifier: BSL-1.0
//
// A model begins with what enters it.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<3>, Linear<4>, Linear<2>, MSE> {};
#else
struct Net : Model<Linear<4>, Linear<2>, MSE> {};
#endif

using Trainer = Pipeline<Net, Stages<2>, MicroBatches<2>, PortableHost, AdamW>;
#include "program.hpp"
