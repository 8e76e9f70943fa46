// error: wrong::Layer<1, .*wrong::size_must_be_positive\b.*Linear<0>.*Found<0>
// SPDX-License-Identifier: BSL-1.0
//
// A layer of no width makes nothing.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<3>, Linear<4>, Linear<1>, MSE> {};
#else
struct Net : Model<Input<3>, Linear<4>, Linear<0>, MSE> {};
#endif

using Trainer = Pipeline<Net, Stages<2>, MicroBatches<2>, PortableHost, AdamW>;
#include "program.hpp"
