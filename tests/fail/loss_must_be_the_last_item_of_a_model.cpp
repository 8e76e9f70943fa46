// error: wrong::Layer<1, .*wrong::loss_must_be_the_last_item_of_a_model\b.*CrossEntropy
// SPDX-License-Identifier: BSL-1.0
//
// Nothing comes after the loss.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<3>, Linear<4>, Linear<2>, CrossEntropy> {};
#else
struct Net : Model<Input<3>, Linear<4>, CrossEntropy, Linear<2>, CrossEntropy> {};
#endif

using Trainer = Pipeline<Net, Stages<2>, MicroBatches<2>, PortableHost, AdamW>;
#include "program.hpp"
