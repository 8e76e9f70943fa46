// error: wrong::Layer<0, .*wrong::layer_needs_real_numbers_but_gets_token_ids\b.*LayerNorm.*Found<16>
// SPDX-License-Identifier: BSL-1.0
//
// Token ids have to become vectors first.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Tokens<11, 16>, Embedding<4>, LayerNorm, Linear<11>, CrossEntropy> {};
#else
struct Net : Model<Tokens<11, 16>, LayerNorm, Linear<11>, CrossEntropy> {};
#endif

using Trainer = Pipeline<Net, Stages<2>, MicroBatches<2>, PortableHost, AdamW>;
#include "program.hpp"
