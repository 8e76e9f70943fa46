// SPDX-License-Identifier: BSL-1.0
//
// Ten modules of pairs.py as models: what docs/howto/from_pytorch.md shows side by side. Each loads
// the module's state_dict as a user does; outputs, loss, gradients and running statistics agree.
#include "golden/record.hpp"

using namespace pp;

namespace {

// [mlp]
struct Mlp : Model<Input<20>, Linear<32>, ReLU, Linear<16>, ReLU, Linear<5>, CrossEntropy> {};
// [/mlp]

// [convnet]
struct ConvNet
    : Model<Input<12, 12, 3>, Conv2d<8, 3, Padding<1>, NoBias>, BatchNorm, ReLU, MaxPool2d<2>,
            Conv2d<12, 3>, ReLU, AdaptiveAvgPool2d<1>, Flatten, Linear<5>, CrossEntropy> {};
// [/convnet]

// [resblock]
template <int N, int Steps>
using BasicBlock =
    Seq<SumOf<Seq<Named<"conv1", Conv2d<N, 3, Stride<Steps>, Padding<1>, NoBias>>,
                  Named<"bn1", BatchNorm>, ReLU, Named<"conv2", Conv2d<N, 3, Padding<1>, NoBias>>,
                  Named<"bn2", BatchNorm>>,
              Named<"downsample", Seq<Conv2d<N, 1, Stride<Steps>, NoBias>, BatchNorm>>>,
        ReLU>;

struct ResNet : Model<Input<8, 8, 3>, Named<"block", BasicBlock<8, 2>>, MeanPool,
                      Named<"fc", Linear<5>>, CrossEntropy> {};
name_map const resnet_names{{"block.0.0.", "block."}, {"block.0.downsample.", "block.downsample."}};
// [/resblock]

// [mobile]
template <int Width, int Hidden>
using InvertedResidual =
    Residual<Named<"conv", Seq<Conv2d<Hidden, 1, NoBias>, BatchNorm, ReLU6,
                               Conv2d<Hidden, 3, Padding<1>, Groups<Hidden>, NoBias>, BatchNorm,
                               ReLU6, Conv2d<Width, 1, NoBias>, BatchNorm>>>;

struct Mobile : Model<Input<8, 8, 3>, Conv2d<6, 3, Stride<2>, Padding<1>>, InvertedResidual<6, 18>,
                      AdaptiveAvgPool2d<1>, Flatten, Linear<5>, CrossEntropy> {};
// [/mobile]

// [unet]
struct UNet : Model<Input<8, 8, 3>, Named<"down", Conv2d<6, 3, Padding<1>>>, ReLU, Stash<"fine">,
                    MaxPool2d<2>, Named<"middle", Conv2d<10, 3, Padding<1>>>, ReLU,
                    Named<"up", ConvTranspose2d<6, 2, Stride<2>>>, Pop<"fine", Concat>,
                    Named<"out", Conv2d<4, 1>>, MSE> {};
// [/unet]

// [bag]
struct BagOfWords
    : Model<Tokens<50, 9>, Named<"words", Embedding<12>>, MeanPool, Named<"hidden", Linear<16>>,
            GELU, Named<"out", Linear<5>>, CrossEntropy> {};
// [/bag]

// [encoder]
template <int Heads, int Width, int Hidden>
using EncoderLayer =
    Seq<Residual<Named<"norm1", LayerNorm>, Named<"self_attn", Attention<Heads, NotCausal>>>,
        Residual<Named<"norm2", LayerNorm>, Named<"linear1", Linear<Hidden>>, GELU,
                 Named<"linear2", Linear<Width>>>>;

struct Encoder : Model<Tokens<50, 9>, Named<"words", Embedding<12>>, Named<"positions", Positions>,
                       Named<"layers", Repeat<2, EncoderLayer<3, 12, 24>>>,
                       Named<"norm", LayerNorm>, MeanPool, Named<"out", Linear<5>>, CrossEntropy> {
};
name_map const encoder_names{
    {"positions.weight", "positions"},   {"layers.0.0.", "blocks.layers.0."},
    {"layers.0.1.", "blocks.layers.0."}, {"layers.1.0.", "blocks.layers.1."},
    {"layers.1.1.", "blocks.layers.1."}, {"norm.", "blocks.norm."}};
// [/encoder]

// [gpt]
using Block =
    Seq<Residual<Named<"ln_1", LayerNorm>, Named<"attn", Attention<2>>>,
        Residual<Named<"ln_2", LayerNorm>, Named<"mlp", Seq<Linear<48>, GELUTanh, Linear<12>>>>>;

struct GPT : Model<Tokens<50, 9>, Named<"wte", Embedding<12>>, Named<"wpe", Positions>,
                   Named<"h", Repeat<2, Block>>, Named<"ln_f", LayerNorm>,
                   Named<"head", Linear<50, NoBias>>, CrossEntropy> {};
name_map const gpt_names{
    {"h.0.0.", "h.0."}, {"h.0.1.", "h.0."}, {"h.1.0.", "h.1."}, {"h.1.1.", "h.1."}};
// [/gpt]

// [vit]
struct VisionTransformer
    : Model<Input<12, 12, 3>, Named<"conv_proj", Conv2d<12, 4, Stride<4>>>, Reshape<Rest, 12>,
            Named<"class_token", ClassToken>, Named<"positions", Positions>,
            Named<"block", EncoderLayer<3, 12, 24>>,
            Named<"norm", With<LayerNorm, Epsilon<1, 1'000'000>>>, FirstPosition,
            Named<"head", Linear<5>>, CrossEntropy> {};
name_map const vit_names{{"class_token.weight", "class_token"},
                         {"positions.weight", "positions"},
                         {"block.0.", "block."},
                         {"block.1.", "block."}};
// [/vit]

// [signal]
struct Signal : Model<Input<16, 2>, Conv1d<8, 5, Stride<2>, Padding<2>>, GroupNorm<2>, SiLU,
                      ConvTranspose1d<4, 4, Stride<2>, Padding<1>>, LeakyReLU, Conv1d<2, 1>, MSE> {
};
// [/signal]

template <class M>
void check(std::string const& name, name_map const& names = {}) {
  using Trainer = Pipeline<M, PortableHost, Stages<2>, MicroBatchSize<4>>;
  golden::record const theirs("pairs", name);
  golden::batches<Trainer> const data(theirs);
  std::string const path = PIPE_TESTS_FOLDER "/golden/pairs/" + name;
  Trainer trainer, after;
  load_weights(trainer, path + ".safetensors", load_policy::strict, names);
  load_weights(after, path + ".after.safetensors", load_policy::strict, names);

  std::vector<float> output(std::size_t(data.samples() * Trainer::outputs_per_sample));
  trainer.forward(data[0], output);
  golden::check_near(name + ": output", output, theirs.numbers<double>("output"));
  std::vector const loss{trainer.gradients(data[0]).loss};
  golden::check_near(name + ": loss", loss, theirs.numbers<double>("loss"));
  auto const ours = trainer.parameters(), wanted = after.parameters();
  for (std::size_t i = 0; i < ours.size(); ++i)
    if (!ours[i].gradients.empty())
      golden::check_near(name + ": gradient of " + ours[i].name, ours[i].gradients,
                         wanted[i].values);
  trainer.step(data[0]);
  for (std::size_t i = 0; i < ours.size(); ++i)
    if (ours[i].gradients.empty())
      golden::check_near(name + ": " + ours[i].name, ours[i].values, wanted[i].values);
}

}  // namespace

TEST_CASE("modules of PyTorch and their models compute the same", "[golden]") {
  check<Mlp>("mlp");
  check<ConvNet>("convnet");
  check<ResNet>("resblock", resnet_names);
  check<Mobile>("mobile");
  check<UNet>("unet");
  check<BagOfWords>("bag");
  check<Encoder>("encoder", encoder_names);
  check<GPT>("gpt", gpt_names);
  check<VisionTransformer>("vit", vit_names);
  check<Signal>("signal");
}
