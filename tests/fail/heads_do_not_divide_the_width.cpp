// error: wrong::Layer<2, .*wrong::heads_do_not_divide_the_width\b.*Attention<6>.*Found<385>
// SPDX-License-Identifier: BSL-1.0
//
// Each head takes an equal part of the width.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Tokens<11, 4>, Embedding<384>, Positions, Residual<LayerNorm, Attention<6>>,
                   Linear<11>, CrossEntropy> {};
#else
struct Net : Model<Tokens<11, 4>, Embedding<385>, Positions, Residual<LayerNorm, Attention<6>>,
                   Linear<11>, CrossEntropy> {};
#endif

using Trainer = Pipeline<Net, Stages<2>, MicroBatches<2>, PortableHost, AdamW>;
#include "program.hpp"
