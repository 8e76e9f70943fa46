// SPDX-License-Identifier: BSL-1.0
//
// The first program of README.md.
// [sample]
#include <pipe/pipe.hpp>
using namespace pp;

using Block = Seq<Residual<LayerNorm, Attention<6>>,
                  Residual<LayerNorm, Linear<1536>, GELUTanh, Linear<384>>>;

struct GPT
    : Model<Tokens<256, 256>,  // vocabulary, context
            Embedding<384>, Positions, Repeat<8, Block>, LayerNorm, Linear<256>, CrossEntropy> {};

using Trainer = Pipeline<GPT, Stages<4>, MicroBatches<8>, MicroBatchSize<2>, OneFOneB, AdamW, Host>;

static_assert(Trainer::plan.imbalance < 1.10 && Trainer::plan.bubble < 0.30);

double train(Trainer& trainer, Trainer::batch const& batch) { return trainer.step(batch).loss; }
// [/sample]
