// SPDX-License-Identifier: BSL-1.0
//
// What docs/reference/layers shows, and what its tables say of shapes, parameters and work.
// Compiling is passing.
#include <pipe/pipe.hpp>

using namespace pp;

namespace pages_of_layers {

// [inputs]
struct Text : Model<Tokens<5000, 128>, Embedding<64>, Positions,  // (128, 64)
                    Residual<LayerNorm, Attention<4>>, LayerNorm, Linear<5000>, CrossEntropy> {};

struct Pictures : Model<Input<64, 64, 3>, PatchEmbedding<96, 16>,  // 4 x 4 patches: (16, 96)
                        ClassToken, SinusoidalPositions,           // (17, 96)
                        Residual<LayerNorm, Attention<4, NotCausal>>, FirstPosition,  // (96)
                        Linear<10>, CrossEntropy> {};
// [/inputs]

// [bags]
/// Whether a user who has seen up to 50 films likes one more.
using Film = EmbeddingBag<32, Init<Normal<1>>>;
struct Films : Model<Tokens<9000, 50>, Film, Stash<"user">,     // (32)
                     Named<"film", Tokens<9000, 1>>, Film,      // (32)
                     Pop<"user", Multiply>, Linear<16>, PReLU,  // (16)
                     Linear<8>, With<PReLU, PerChannel>, Linear<1>, BCE> {};
// [/bags]

// [linear]
/// A feed-forward part as in Llama, and one with a slope, a limit and dropout of one in ten.
using Gated = Residual<RMSNorm, Linear<2 * 172, NoBias>, SwiGLU, Linear<64, NoBias>>;
using Plain =
    Residual<LayerNorm, Linear<256, Init<Kaiming, Zeros>>, With<LeakyReLU, NegativeSlope<1, 5>>,
             Linear<64>, SoftCap<30>, Dropout<1, 10>>;
// [/linear]

// [attention]
/// Every second block sees 64 positions, the others all; two heads of queries for one of keys.
template <class... Sees>
using Block =
    Seq<Residual<RMSNorm,
                 Attention<8, KeyValueHeads<4>, HeadSize<32>, QKNorm<>, RoPE<>, NoBias, Sees...>>,
        Gated>;
struct Windows : Model<Tokens<5000, 256>, Embedding<64>, Repeat<3, Block<Window<64>>, Block<>>,
                       RMSNorm, Linear<5000, NoBias>, SoftCap<30>, CrossEntropy> {};
// [/attention]

// [convolution]
struct Segments
    : Model<Input<64, 64, 3>, Conv2d<16, 5, Stride<2>, Padding<2>>, ReLU,  // (32, 32, 16)
            Conv2d<16, 3, Groups<16>, Padding<1>, NoBias>,                 // depthwise
            Conv2d<32, 1>, ReLU,                                           // (32, 32, 32)
            Conv2d<32, 3, Dilation<2>, Padding<2>>, ReLU,                  // (32, 32, 32)
            Conv2d<32, Axes<1, 7>, Padding<0, 3>>, ReLU,                   // (32, 32, 32)
            ConvTranspose2d<4, 2, Stride<2>>, CrossEntropy> {};            // (64, 64, 4)
// [/convolution]

// [normalisation]
struct Norms
    : Model<Input<8, 8, 3>, Conv2d<16, 3, NoBias>, BatchNorm, ReLU,  // (6, 6, 16)
            Conv2d<16, 3, NoBias>, With<BatchNorm, SyncOver<4>, Momentum<1, 100>>,
            ReLU,  // (4, 4, 16)
            Conv2d<16, 1>, GroupNorm<4>, With<InstanceNorm, WithAffine>,
            LocalResponseNorm<5, ResponseScale<1, 2'000>>,
            With<LayerNorm, Epsilon<1, 1'000'000'000'000>>, MeanPool, Linear<10>, CrossEntropy> {};
// [/normalisation]

// [shapes]
struct Mixer : Model<Input<28, 28, 1>, Pad<2>,                     // (32, 32, 1)
                     Conv2d<24, 8, Stride<8>>, Reshape<Rest, 24>,  // (4, 4, 24), then (16, 24)
                     Residual<LayerNorm, Linear<48>, GELUTanh, Linear<24>>,
                     Flatten,  // (384)
                     Linear<10>, CrossEntropy> {};
// [/shapes]

// [losses]
/// Rare classes count more, targets are smoothed, and the batch brings a weight for each row.
struct Classes
    : Model<Input<20>, Linear<32>, Tanh, Linear<3>,
            With<CrossEntropy, ClassWeights<1, 5, 2>, LabelSmoothing<1, 10>, Weights<"weight">>> {};
/// Robust regression of two numbers, on a scale of 1/2; a sample without them has a weight of 0.
struct Line : Model<Input<20>, Linear<32>, Tanh, Linear<2>, Huber<1, 2, Weights<"there">>> {};
/// Yes or no for each of five questions.
struct Answers : Model<Input<20>, Linear<32>, Tanh, Linear<5>, With<BCE, PosWeight<3>>> {};
// [/losses]

/// The numbers of a model that are trained; constants: those that are not.
template <class M>
constexpr long trained() {
  long n = 0;
  for (int i = 0; i < M::graph.size.parameters; ++i)
    if (M::graph.parameters[i].trained) n += M::graph.parameters[i].elements();
  return n;
}
template <class M>
constexpr long constants() {
  long n = 0;
  for (int i = 0; i < M::graph.size.parameters; ++i)
    if (!M::graph.parameters[i].trained) n += M::graph.parameters[i].elements();
  return n;
}
/// FLOPs of the forward, the loss included, as the planner counts them for a sample.
template <class M>
constexpr long work() {
  long n = 0;
  for (int i = 0; i < M::graph.size.ops; ++i) n += detail::cost_of(M::graph.ops[i]).flops;
  return n;
}

static_assert(Text::graph.output == sample_shape(128, 5000));
static_assert(trained<Text>() ==
              5000 * 64 + 128 * 64 + 2 * 64 + (4 * 64 * 64 + 4 * 64) + 2 * 64 + (64 * 5000 + 5000));
static_assert(Pictures::graph.output == sample_shape(10));
static_assert(trained<Pictures>() ==
                  (3 * 16 * 16 * 96 + 96) + 96 + 2 * 96 + (4 * 96 * 96 + 4 * 96) + (96 * 10 + 10) &&
              constants<Pictures>() == 17 * 96);

static_assert(Films::graph.output == sample_shape(1));
static_assert(trained<Films>() == 2 * 9000 * 32 + (32 * 16 + 16) + 1 + (16 * 8 + 8) + 8 + (8 + 1));

struct Feeds : Model<Input<64>, Gated, Plain, MSE> {};
static_assert(Feeds::graph.output == sample_shape(64));
static_assert(trained<Feeds>() == 64 + 64 * 344 + 172 * 64 +  //
                                      2 * 64 + (64 * 256 + 256) + (256 * 64 + 64));

static_assert(Windows::graph.output == sample_shape(256, 5000));
static_assert(trained<Windows>() ==
                  5000 * 64 +
                      6 * (64 + 64 * (8 + 2 * 4) * 32 + 2 * 32 + 8 * 32 * 64 +
                           (trained<Feeds>() - 2 * 64 - (64 * 256 + 256) - (256 * 64 + 64))) +
                      64 + 64 * 5000 &&
              constants<Windows>() == 6 * 256 * 32);

static_assert(Segments::graph.output == sample_shape(64, 64, 4));
static_assert(trained<Segments>() == (5 * 5 * 3 * 16 + 16) + 3 * 3 * 16 + (16 * 32 + 32) +
                                         (3 * 3 * 32 * 32 + 32) + (7 * 32 * 32 + 32) +
                                         (2 * 2 * 32 * 4 + 4));

static_assert(Norms::graph.output == sample_shape(10));
static_assert(trained<Norms>() == 3 * 3 * 3 * 16 + 2 * 16 + 3 * 3 * 16 * 16 + 2 * 16 +
                                      (16 * 16 + 16) + 2 * 16 + 2 * 16 + 2 * 16 + (16 * 10 + 10) &&
              constants<Norms>() == 2 * 2 * 16);

static_assert(Mixer::graph.output == sample_shape(10));
static_assert(trained<Mixer>() ==
              (8 * 8 * 24 + 24) + 2 * 24 + (24 * 48 + 48) + (48 * 24 + 24) + (384 * 10 + 10));

static_assert(Classes::graph.output == sample_shape(3) && Line::graph.output == sample_shape(2) &&
              Answers::graph.output == sample_shape(5));

// The tables of work: what a layer adds to the same model without it.
template <class... L>
struct Rows : Model<Input<6, 8>, L..., MSE> {};
template <class... L>
struct Cells : Model<Input<7, 6, 8>, L..., MSE> {};
template <class M, class Without>
inline constexpr long work_beside = work<M>() - work<Without>();
static_assert(work_beside<Rows<Tanh, Linear<8>>, Rows<Tanh>> == 2 * 6 * 8 * 8 + 6 * 8);
static_assert(work_beside<Rows<Tanh, GELUTanh>, Rows<Tanh>> == 8 * 6 * 8);
static_assert(work_beside<Rows<Tanh, LayerNorm>, Rows<Tanh>> == 8 * 6 * 8);
static_assert(work_beside<Rows<Tanh, PReLU>, Rows<Tanh>> == 2 * 6 * 8);
static_assert(work_beside<Rows<Tanh, BatchNorm>, Rows<Tanh>> == 12 * 6 * 8);
static_assert(
    work_beside<Rows<Tanh, Attention<4, KeyValueHeads<2>, NotCausal, NoBias>>, Rows<Tanh>> ==
    4 * 6 * 8 * (4 + 2) * 2 + 4 * 6 * 6 * 4 * 2 + 8 * 6 * 4 * 2);
static_assert(work_beside<Cells<Tanh, Conv2d<8, 3, Padding<1>, Groups<2>, NoBias>>, Cells<Tanh>> ==
              2 * 3 * 3 * 4 * 8 * 7 * 6);
static_assert(work_beside<Cells<Tanh, ConvTranspose2d<8, 3, Padding<1>, NoBias>>, Cells<Tanh>> ==
              2 * 3 * 3 * 8 * 8 * 7 * 6);
static_assert(work_beside<Cells<Tanh, MaxPool2d<3, Stride<1>, Padding<1>>>, Cells<Tanh>> ==
              3 * 3 * 7 * 6 * 8);
static_assert(work_beside<Cells<Tanh, AdaptiveAvgPool2d<7, 6>>, Cells<Tanh>> == 7 * 6 * 8);
static_assert(work_beside<Rows<Tanh, Residual<Tanh>>, Rows<Tanh, Tanh>> == 6 * 8);

// The tables of what is kept: the numbers of a sample beside the same model without these layers.
// There y of Tanh is kept already.
template <class... L>
struct Kept : Model<Input<16, 32>, Linear<32>, Tanh, L..., MSE> {};
template <class... L>
inline constexpr long kept_beside = (Pipeline<Kept<L...>>::plan.stages[0].saved_bytes -
                                     Pipeline<Kept<>>::plan.stages[0].saved_bytes) /
                                    long(sizeof(float));
static_assert(kept_beside<Linear<32>, GELUTanh, Dropout<1, 10>> == 16 * 32);  // x of GELUTanh
static_assert(kept_beside<Dropout<1, 10>, MaxPool1d<2>, UpsampleNearest1d<2>> == 16 * 32);
static_assert(kept_beside<Softmax> == 16 * 32);
static_assert(kept_beside<Linear<32>, PReLU> == 16 * 32);  // x of PReLU
static_assert(kept_beside<LayerNorm> == 16 * 2 && kept_beside<BatchNorm> == 3 * 32);
static_assert(kept_beside<Attention<2, KeyValueHeads<1>>> ==
              16 * (2 + 2 * 1) * 16 + 16 * 2 * 16 + 16 * 2);

}  // namespace pages_of_layers
