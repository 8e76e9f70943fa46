// SPDX-License-Identifier: BSL-1.0
//
// Planning alone, no kernels: many stages and many micro-batches.
//
// budget: g++ -fconstexpr-ops-limit=3700000 -fconstexpr-loop-limit=4700 -ftemplate-depth=40
// budget: clang++ -fconstexpr-steps=290000 -ftemplate-depth=40
#include <pipe/pipe.hpp>

using namespace pp;

using Block =
    Seq<Residual<LayerNorm, Attention<3>>, Residual<LayerNorm, Linear<384>, GELUTanh, Linear<96>>>;
struct GPT : Model<Tokens<256, 128>, Embedding<96>, Positions, Repeat<12, Block>, LayerNorm,
                   Linear<256>, CrossEntropy> {};
using Trainer = Pipeline<GPT, Stages<16>, MicroBatches<64>, MicroBatchSize<2>, AdamW>;

static_assert(Trainer::plan.peak_in_flight == 16);
