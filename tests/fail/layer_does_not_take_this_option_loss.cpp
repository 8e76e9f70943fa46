// error: wrong::Layer<2, .*wrong::layer_does_not_take_this_option\b.*With<.*CrossEntropy, .*NoBias>, .*NoBias>
// SPDX-License-Identifier: BSL-1.0
//
// The loss counts as the layer after the last.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<3>, Linear<4>, Linear<2>, With<CrossEntropy, ZLoss<1, 100>>> {};
#else
struct Net : Model<Input<3>, Linear<4>, Linear<2>, With<CrossEntropy, NoBias>> {};
#endif

using Trainer = Pipeline<Net, Stages<2>, MicroBatches<2>, PortableHost, AdamW>;
#include "program.hpp"
