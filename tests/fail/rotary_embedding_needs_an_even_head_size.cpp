// error: wrong::Layer<1, .*wrong::rotary_embedding_needs_an_even_head_size\b.*Attention<8, .*RoPE<.*Found<3>
// SPDX-License-Identifier: BSL-1.0
//
// Rotary positions turn pairs of numbers.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Tokens<11, 4>, Embedding<24>, Attention<6, RoPE<>>, Linear<11>, CrossEntropy> {};
#else
struct Net : Model<Tokens<11, 4>, Embedding<24>, Attention<8, RoPE<>>, Linear<11>, CrossEntropy> {};
#endif

using Trainer = Pipeline<Net, Stages<2>, MicroBatches<2>, PortableHost, AdamW>;
#include "program.hpp"
