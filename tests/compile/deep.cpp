// SPDX-License-Identifier: BSL-1.0
//
// Planning alone, no kernels: a model of many layers.
//
// budget: g++ -fconstexpr-ops-limit=2800000 -fconstexpr-loop-limit=2000 -ftemplate-depth=40
// budget: clang++ -fconstexpr-steps=240000 -ftemplate-depth=40
#include <pipe/pipe.hpp>

using namespace pp;

#ifndef PIPE_BLOCKS
#define PIPE_BLOCKS 96
#endif

using Block =
    Seq<Residual<LayerNorm, Attention<3>>, Residual<LayerNorm, Linear<384>, GELUTanh, Linear<96>>>;
struct GPT : Model<Tokens<256, 128>, Embedding<96>, Positions, Repeat<PIPE_BLOCKS, Block>,
                   LayerNorm, Linear<256>, CrossEntropy> {};
using Trainer = Pipeline<GPT, Stages<4>, MicroBatches<8>, MicroBatchSize<2>, AdamW>;

static_assert(Trainer::plan.stages[3].end_layer == 2 * PIPE_BLOCKS + 4);
