// error: wrong::Layer<1, .*wrong::layer_does_not_take_this_option\b.*Attention<3, .*AdamW>, .*AdamW>
// SPDX-License-Identifier: BSL-1.0
//
// An option of a pipeline.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Tokens<11, 4>, Embedding<6>, Attention<3, NotCausal>, Linear<11>, CrossEntropy> {
};
#else
struct Net : Model<Tokens<11, 4>, Embedding<6>, Attention<3, AdamW>, Linear<11>, CrossEntropy> {};
#endif

using Trainer = Pipeline<Net, Stages<2>, MicroBatches<2>, PortableHost, AdamW>;
#include "program.hpp"
