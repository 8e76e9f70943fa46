// error: wrong::Layer<1, .*wrong::key_value_heads_do_not_divide_the_heads\b.*Attention<6, .*KeyValueHeads<4>.*Found<4>
// SPDX-License-Identifier: BSL-1.0
//
// Each key head is shared by equally many query heads.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Tokens<11, 4>, Embedding<24>, Attention<6, KeyValueHeads<2>>, Linear<11>,
                   CrossEntropy> {};
#else
struct Net : Model<Tokens<11, 4>, Embedding<24>, Attention<6, KeyValueHeads<4>>, Linear<11>,
                   CrossEntropy> {};
#endif

using Trainer = Pipeline<Net, Stages<2>, MicroBatches<2>, PortableHost, AdamW>;
#include "program.hpp"
