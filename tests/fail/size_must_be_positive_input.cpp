// error: wrong::Layer<0, .*wrong::size_must_be_positive\b.*Found<2, 0>
// SPDX-License-Identifier: BSL-1.0
//
// And an input without a number.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<2, 1>, Linear<4>, Linear<2>, MSE> {};
#else
struct Net : Model<Input<2, 0>, Linear<4>, Linear<2>, MSE> {};
#endif

using Trainer = Pipeline<Net, Stages<2>, MicroBatches<2>, PortableHost, AdamW>;
#include "program.hpp"
