// error: wrong::Layer<2, .*wrong::loss_must_be_the_last_item_of_a_model\b.*MSE
// SPDX-License-Identifier: BSL-1.0
//
// One loss; of two at the end the first is wrong.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<3>, Linear<4>, Linear<2>, CrossEntropy> {};
#else
struct Net : Model<Input<3>, Linear<4>, Linear<2>, MSE, CrossEntropy> {};
#endif

using Trainer = Pipeline<Net, Stages<2>, MicroBatches<2>, PortableHost, AdamW>;
#include "program.hpp"
