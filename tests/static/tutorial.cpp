// SPDX-License-Identifier: BSL-1.0
//
// What docs/tutorial/from_a_first_model_to_gpt.md shows. Compiling is passing.
#include <pipe/pipe.hpp>

using namespace pp;

namespace tutorial {

// [digits]
struct Digits : Model<Input<28, 28>, Flatten, Linear<128>, ReLU, Linear<10>, CrossEntropy> {};

static_assert(Digits::graph.output == sample_shape(10));
static_assert(Digits::graph.size.parameters == 4);  // two matrices, two biases
// [/digits]

// [trainer]
using Trainer = Pipeline<Digits, MicroBatches<4>, MicroBatchSize<16>, Adam>;

static_assert(Trainer::samples == 64);  // a step learns from 4 x 16 samples
static_assert(Trainer::plan.parameters == 784 * 128 + 128 + 128 * 10 + 10);
// [/trainer]

// [words]
using Block = Seq<Residual<LayerNorm, Attention<4>>,  //
                  Residual<LayerNorm, Linear<256>, GELUTanh, Linear<64>>>;

struct Words
    : Model<Tokens<256, 64>,  // every byte is a token; a window of 64
            Embedding<64>, Positions, Repeat<6, Block>, LayerNorm, Linear<256>, CrossEntropy> {};
// [/words]

// [stages]
using Four = Pipeline<Words, Stages<4>, MicroBatches<8>, MicroBatchSize<2>, OneFOneB, AdamW>;

static_assert(Four::plan.imbalance < 1.25);     // the slowest stage over the mean
static_assert(Four::plan.bubble < 0.37);        // idle share of the step
static_assert(Four::plan.peak_in_flight == 4);  // micro-batches that rank 0 keeps at once
// [/stages]

// [memory]
using AllAtOnce = Pipeline<Words, Stages<4>, MicroBatches<8>, MicroBatchSize<2>, GPipe, AdamW>;
using Again =
    Pipeline<Words, Stages<4>, MicroBatches<8>, MicroBatchSize<2>, GPipe, AdamW, RecomputeAll>;
using Limited =
    Pipeline<Words, Stages<4>, MicroBatches<8>, MicroBatchSize<2>, AdamW, MemoryLimit<16_MiB>>;

static_assert(AllAtOnce::plan.stages[0].saved_bytes ==
              2 * Four::plan.stages[0].saved_bytes);  // 8 in flight, not 4
static_assert(Again::plan.stages[0].saved_bytes == 0 && Again::plan.stages[0].recompute_flops > 0);
static_assert(Limited::plan.rank_bytes[0] <= 16_MiB);
// [/memory]

// [gpt2]
/// GPT-2's details: the head is the embedding's table, dropout, its initial values, no decay for
/// what adds up.
template <int Layers, int Width, int Heads>
using Gpt2Block =
    Seq<Residual<LayerNorm, Attention<Heads, OutputInit<ScaledNormal<2, 100, Layers>, Zeros>>,
                 Dropout<1, 10>>,
        Residual<LayerNorm, Linear<4 * Width>, GELUTanh,
                 Linear<Width, Init<ScaledNormal<2, 100, Layers>, Zeros>>, Dropout<1, 10>>>;

struct Gpt2 : Model<Tokens<50257, 1024>,
                    Group<Init<Normal<2, 100>, Zeros>,  //
                          Named<"wte", Embedding<768>>, Named<"wpe", Positions>, Dropout<1, 10>,
                          Named<"h", Repeat<12, Gpt2Block<12, 768, 12>>>, Named<"ln_f", LayerNorm>,
                          Tied<"wte">>,
                    CrossEntropy> {};

using Eight = Pipeline<Gpt2, Stages<8>, MicroBatches<32>, OneFOneB, AdamW, RecomputeAll>;
static_assert(Eight::plan.parameters == 124'439'808);  // as published
// [/gpt2]

}  // namespace tutorial
