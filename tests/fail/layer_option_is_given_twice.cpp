// error: wrong::Layer<1, .*wrong::layer_option_is_given_twice\b.*Attention<.*NotCausal>, .*NotCausal>
// SPDX-License-Identifier: BSL-1.0
//
// One option of a kind.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net
    : Model<Tokens<11, 4>, Embedding<6>, Attention<3, Causal, NoBias>, Linear<11>, CrossEntropy> {};
#else
struct Net : Model<Tokens<11, 4>, Embedding<6>, Attention<3, Causal, NotCausal>, Linear<11>,
                   CrossEntropy> {};
#endif

using Trainer = Pipeline<Net, Stages<2>, MicroBatches<2>, PortableHost, AdamW>;
#include "program.hpp"
