// SPDX-License-Identifier: BSL-1.0
//
// What docs/howto/attention.md shows. Compiling is passing.
#include <pipe/pipe.hpp>

using namespace pp;

namespace attention_page {

// [mistral]
/// Mistral's attention: 8 of 32 heads have keys, every position sees the last 4096.
using Mistral = Attention<32, KeyValueHeads<8>, RoPE<>, Window<4096>, NoBias>;
/// Qwen 3's: heads are 128 wide whatever the model is, and normalised before their rotation.
using Qwen3 = Attention<16, KeyValueHeads<8>, HeadSize<128>, QKNorm<>, RoPE<1000000>, NoBias>;
/// Gemma 2's, in every second block: scores are kept below 50.
using Gemma2 =
    Attention<8, KeyValueHeads<4>, HeadSize<256>, RoPE<>, Window<4096>, SoftCap<50>, NoBias>;
/// BLOOM's: no positions but ALiBi.
using Bloom = Attention<32, ALiBi>;
// [/mistral]

// [mask]
/// Documents of 64 positions, one after the other in a sample, do not see each other.
struct SameDocument {
  PIPE_HD static constexpr bool visible(int query, int key) { return query / 64 == key / 64; }
};

struct Packed : Model<Tokens<256, 256>, Embedding<64>, Positions,
                      Repeat<4, Residual<LayerNorm, Attention<4, Mask<SameDocument>>>,
                             Residual<LayerNorm, Linear<256>, GELUTanh, Linear<64>>>,
                      LayerNorm, Linear<256>, SoftCap<30>, CrossEntropy> {};
// [/mask]

// [vision]
/// ViT-B/16.
struct ViT
    : Model<
          Input<224, 224, 3>, PatchEmbedding<768, 16>, ClassToken, Positions,
          Repeat<12, Residual<With<LayerNorm, Epsilon<1, 1'000'000>>, Attention<12, NotCausal>>,
                 Residual<With<LayerNorm, Epsilon<1, 1'000'000>>, Linear<3072>, GELU, Linear<768>>>,
          With<LayerNorm, Epsilon<1, 1'000'000>>, FirstPosition, Linear<1000>, CrossEntropy> {};

using Trainer = Pipeline<ViT, Stages<4>, MicroBatches<8>, AdamW>;
static_assert(Trainer::plan.parameters == 86'567'656);  // as published
// [/vision]

// [deep]
/// 64 blocks without a norm at their end begin as one would.
using Deep = Group<Init<DepthScaled<Xavier, 64>>,
                   Repeat<64, Residual<LayerNorm, Attention<16, HeadSize<64>>>,
                          Residual<LayerNorm, Linear<8192>, ReLU, Linear<1024>>>>;
// [/deep]

// Scores outside of a window cost nothing: the first projections are equal, the scores are not.
template <class Mask>
inline constexpr long work_of_scores =
    Pipeline<Model<Input<4096, 64>, Attention<1, Mask>, MSE>>::plan.stages[0].forward_flops;
static_assert(work_of_scores<Causal> - work_of_scores<Window<512>> ==
              2L * 4096 * 64 * 4096 - 4L * 4096 * 64 * 512);
static_assert(work_of_scores<Window<4096>> == work_of_scores<Causal>);

template <class... L>
struct Of : Model<Tokens<256, 256>, Embedding<1024>, L..., Linear<256>, CrossEntropy> {};
template <class... L>
inline constexpr bool compiles = Of<L...>::graph.size.ops > 0;
static_assert(compiles<Mistral, Qwen3, Gemma2, Bloom> && compiles<Deep> &&
              Packed::graph.output == sample_shape(256, 256));

}  // namespace attention_page
