// error: wrong::Layer<1, .*wrong::layer_needs_token_ids_but_gets_real_numbers\b.*Embedding<5>.*Found<16, 4>
// SPDX-License-Identifier: BSL-1.0
//
// What is a vector already cannot be looked up.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Tokens<11, 16>, Embedding<4>, Linear<5>, CrossEntropy> {};
#else
struct Net : Model<Tokens<11, 16>, Embedding<4>, Embedding<5>, CrossEntropy> {};
#endif

using Trainer = Pipeline<Net, Stages<2>, MicroBatches<2>, PortableHost, AdamW>;
#include "program.hpp"
